/** What the files of a shard share and none may change: the next one would run in another world than alone. */
import http from "node:http";
import https from "node:https";
import { setTimeout as sleep } from "node:timers/promises";

export interface ProcessState {
  readonly values: ReadonlyMap<string, unknown>;
  /** Counts of what keeps a process alive, by kind. */
  readonly resources: ReadonlyMap<string, number>;
}

/** How long what is left may take to end by itself, in milliseconds, and which kinds of it have to. */
export interface Grace {
  readonly ms: number;
  readonly kinds: readonly string[];
}

const SERVERS_AND_CHILDREN = ["TCPServerWrap", "PipeServerWrap", "UDPWrap", "ProcessWrap", "Worker"];
/** Servers end with their file. A timer may outlast it: of a call that nobody waits for any more, for instance. */
export const AFTER_FILE: Grace = { ms: 2000, kinds: SERVERS_AND_CHILDREN };
/** No timer may outlast the process: an interval would keep it for ever. */
export const AFTER_SHARD: Grace = { ms: 120_000, kinds: [...SERVERS_AND_CHILDREN, "Timeout"] };

const FETCH_DISPATCHER = Symbol.for("undici.globalDispatcher.1");
const GLOBALS = [
  "Date",
  "fetch",
  "performance",
  "setImmediate",
  "setInterval",
  "setTimeout",
  FETCH_DISPATCHER,
] as const;

export function stateOf(): ProcessState {
  const globals = globalThis as unknown as Readonly<Record<string | symbol, unknown>>;
  const values: [name: string, value: unknown][] = [
    ["process.argv", process.argv.join(" ")],
    ["process.cwd()", process.cwd()],
    ["process.exitCode", process.exitCode],
    ["http.globalAgent", http.globalAgent],
    ["https.globalAgent", https.globalAgent],
    ["Date.now", Date.now],
    ["Math.random", Math.random],
    ...Object.entries(process.env).map(([name, value]): [string, unknown] => [`process.env.${name}`, value]),
    ...GLOBALS.map((name): [string, unknown] => [String(name), globals[name]]),
    ...process
      .eventNames()
      .map((name): [string, unknown] => [`listeners of ${String(name)}`, process.listenerCount(name)]),
  ];
  const resources = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) resources.set(kind, (resources.get(kind) ?? 0) + 1);
  return { values: new Map(values), resources };
}

/** What differs from `before`, in words. */
export async function changesSince(before: ProcessState, { ms, kinds }: Grace): Promise<string[]> {
  const left = (): string[] => {
    const { resources } = stateOf();
    return kinds.filter((kind) => (resources.get(kind) ?? 0) > (before.resources.get(kind) ?? 0));
  };
  // Its own timer is none while it counts.
  for (let waited = 0; waited < ms && left().length > 0; waited += 50) await sleep(50);
  const { values } = stateOf();
  const changed = [...new Set([...values.keys(), ...before.values.keys()])].filter(
    (name) => !Object.is(values.get(name) ?? 0, before.values.get(name) ?? 0),
  );
  return [...changed.map((name) => `${name} has changed`), ...left().map((kind) => `a ${kind} is left`)];
}
