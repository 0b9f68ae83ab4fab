/**
 * A Bottlerocket host without a socket: what its API answers, by the states of its update dispatcher, and its reboots.
 *
 * Actions are asynchronous: 204 begins one, the status answers 423 until it has ended. A reboot takes its time, and comes
 * back with another boot id, and in the staged version if that was to boot next, unless the boot loader goes back.
 */
import { randomUUID } from "node:crypto";
import type { Clock } from "../emulator/clock.ts";
import { type Command, createDispatcher, type Dispatcher, type State } from "./update-dispatcher.ts";

export interface HostOptions {
  readonly version?: string;
  /** The version that the update repository offers; none if it is the one that runs. */
  readonly offers?: string;
  /** Milliseconds of each action; 5 by default. */
  readonly actionMs?: Partial<Record<Command, number>>;
}

export interface HostFacts {
  readonly version: string;
  readonly bootId: string;
  readonly state: State;
}

interface HostAnswer {
  readonly status: number;
  readonly body: string;
  /** Once it has answered, it reboots. */
  readonly reboots: boolean;
}

export interface Host {
  /** Methods and paths in their order, without reads. */
  readonly actions: readonly string[];
  readonly facts: () => HostFacts;
  readonly answer: (method: string, path: string) => HostAnswer;
  readonly offer: (version: string) => void;
  /** The next of these commands fails as a child process does, or is answered with a status. */
  readonly fail: (command: Command | "reboot", how?: "exit" | number) => void;
  /** The next reboots come back in the version before. */
  readonly rollBack: (times: number) => void;
  readonly lock: Dispatcher["lock"];
  /** Comes back from a reboot. */
  readonly boot: () => void;
}

const PATHS: Readonly<Record<string, Command | "reboot">> = {
  "/actions/refresh-updates": "refresh",
  "/actions/prepare-update": "prepare",
  "/actions/activate-update": "activate",
  "/actions/deactivate-update": "deactivate",
  "/actions/reboot": "reboot",
};

export function createHost({ actionMs = {}, ...options }: HostOptions, clock: Clock): Host {
  let version = options.version ?? "1.0.0";
  const updates = createDispatcher({ offers: options.offers ?? version, running: () => version, actionMs, clock });
  let bootId: string = randomUUID();
  let rollBacks = 0;
  const actions: string[] = [];
  const failures: (readonly [Command | "reboot", "exit" | number])[] = [];

  function takeFailure(command: Command | "reboot"): "exit" | number | undefined {
    const at = failures.findIndex(([name]) => name === command);
    return at < 0 ? undefined : failures.splice(at, 1)[0]?.[1];
  }

  const say = (status: number, body: object | string = ""): HostAnswer => ({
    status,
    body: typeof body === "string" ? body : JSON.stringify(body),
    reboots: false,
  });

  function read(path: string): HostAnswer {
    if (path === "/os")
      return say(200, {
        arch: "x86_64",
        build_id: "abc",
        pretty_name: `Bottlerocket OS ${version}`,
        variant_id: "aws-k8s-1.36",
        version_id: version,
      });
    if (path !== "/updates/status") return say(404);
    if (updates.isLocked()) return say(423, "lock held");
    // No look for updates since the boot: there is no status.
    const status = updates.status(version);
    return status ? say(200, status) : say(404, "no status");
  }

  function act(command: Command | "reboot"): HostAnswer {
    actions.push(command);
    if (command !== "reboot") return say(updates.isLocked() ? 423 : updates.begin(command, takeFailure(command)));
    const failure = takeFailure(command);
    return { ...say(typeof failure === "number" ? failure : 204), reboots: failure === undefined };
  }

  return {
    actions,
    facts: () => ({ version, bootId, state: updates.state() }),
    answer(method, path) {
      if (method === "GET") return read(path);
      const command = method === "POST" ? PATHS[path] : undefined;
      return command === undefined ? say(404) : act(command);
    },
    offer: updates.offer,
    fail: (command, how = "exit") => void failures.push([command, how]),
    rollBack: (times) => void (rollBacks = times),
    lock: updates.lock,
    boot() {
      const next = updates.restart();
      if (next !== undefined && rollBacks > 0) rollBacks -= 1;
      else version = next ?? version;
      bootId = randomUUID();
    },
  };
}
