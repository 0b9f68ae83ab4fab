/**
 * A Bottlerocket host: its API on a unix socket, with the states of its update dispatcher.
 *
 * Actions are asynchronous: 204 begins one, the status answers 423 until it has ended. A reboot breaks connections,
 * takes its time, and comes back with another boot id, and in the staged version if that was to boot next, unless the
 * boot loader goes back.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Command, createDispatcher, type Dispatcher, type State } from "./update-dispatcher.ts";

export interface HostOptions {
  readonly version?: string;
  /** The version that the update repository offers; none if it is the one that runs. */
  readonly offers?: string;
  /** Milliseconds of each action; 5 by default. */
  readonly actionMs?: Partial<Record<Command, number>>;
  /** Milliseconds that the host is down while it reboots; 20 by default. */
  readonly rebootMs?: number;
  /** Called when the host goes down, and when it is back. */
  readonly onReboot?: (phase: "down" | "up", host: Host) => void | Promise<void>;
}

export interface Host {
  readonly socketPath: string;
  /** Methods and paths in their order, without reads. */
  readonly actions: readonly string[];
  readonly facts: () => {
    readonly version: string;
    readonly bootId: string;
    readonly state: State;
    readonly isUp: boolean;
    readonly reboots: number;
  };
  readonly offer: (version: string) => void;
  /** The next of these commands fails as a child process does, or is answered with a status. */
  readonly fail: (command: Command | "reboot", how?: "exit" | number) => void;
  /** The next reboots come back in the version before. */
  readonly rollBack: (times: number) => void;
  readonly lock: Dispatcher["lock"];
  /** Reboots without being asked. */
  readonly reboot: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const PATHS: Readonly<Record<string, Command | "reboot">> = {
  "/actions/refresh-updates": "refresh",
  "/actions/prepare-update": "prepare",
  "/actions/activate-update": "activate",
  "/actions/deactivate-update": "deactivate",
  "/actions/reboot": "reboot",
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Starts a host; `stop` ends it and removes its socket. */
export async function startHost(options: HostOptions = {}): Promise<Host> {
  const { actionMs = {}, rebootMs = 20, onReboot } = options;
  const folder = await mkdtemp(join(tmpdir(), "host-"));
  const socketPath = join(folder, "api.sock");
  let version = options.version ?? "1.0.0";
  const updates = createDispatcher({ offers: options.offers ?? version, running: () => version, actionMs });
  let bootId = randomUUID();
  let reboots = 0;
  let rollBacks = 0;
  let isStopped = false;
  let server: Server | undefined;
  const actions: string[] = [];
  const failures: (readonly [Command | "reboot", "exit" | number])[] = [];

  function takeFailure(command: Command | "reboot"): "exit" | number | undefined {
    const at = failures.findIndex(([name]) => name === command);
    return at < 0 ? undefined : failures.splice(at, 1)[0]?.[1];
  }

  async function reboot(): Promise<void> {
    if (server === undefined) return;
    const going = server;
    server = undefined;
    reboots += 1;
    going.closeAllConnections();
    await new Promise((resolve) => going.close(resolve));
    await onReboot?.("down", host);
    await pause(rebootMs);
    const next = updates.restart();
    if (next !== undefined && rollBacks > 0) rollBacks -= 1;
    else version = next ?? version;
    bootId = randomUUID();
    if (isStopped) return;
    await serve();
    await onReboot?.("up", host);
  }

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const { method = "", url = "" } = request;
    const json = (value: unknown): void =>
      void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (method === "GET" && url === "/os")
      return json({
        arch: "x86_64",
        build_id: "abc",
        pretty_name: `Bottlerocket OS ${version}`,
        variant_id: "aws-k8s-1.36",
        version_id: version,
      });
    if (method === "GET" && url === "/updates/status") {
      if (updates.isLocked()) return void response.writeHead(423).end("lock held");
      // No look for updates since the boot: there is no status.
      const status = updates.status(version);
      return status ? json(status) : void response.writeHead(404).end("no status");
    }
    const command = method === "POST" ? PATHS[url] : undefined;
    if (command === undefined) return void response.writeHead(404).end();
    actions.push(command);
    if (command !== "reboot")
      return void response.writeHead(updates.isLocked() ? 423 : updates.begin(command, takeFailure(command))).end();
    const failure = takeFailure("reboot");
    response.writeHead(typeof failure === "number" ? failure : 204).end();
    if (failure === undefined) response.once("close", () => void reboot());
  }

  async function serve(): Promise<void> {
    const next = createServer(answer);
    await new Promise<void>((resolve) => next.listen(socketPath, resolve));
    server = next;
  }

  const host: Host = {
    socketPath,
    actions,
    facts: () => ({ version, bootId, state: updates.state(), isUp: server !== undefined, reboots }),
    offer: updates.offer,
    fail: (command, how = "exit") => void failures.push([command, how]),
    rollBack: (times) => void (rollBacks = times),
    lock: updates.lock,
    reboot,
    async stop() {
      isStopped = true;
      const going = server;
      server = undefined;
      going?.closeAllConnections();
      if (going) await new Promise((resolve) => going.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
  await serve();
  return host;
}
