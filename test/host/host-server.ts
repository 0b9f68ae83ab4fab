/** A Bottlerocket host on a unix socket: a reboot breaks its connections. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHost, type Host as Model, type HostFacts, type HostOptions as ModelOptions } from "./host.ts";

export interface HostOptions extends ModelOptions {
  /** Milliseconds that the host is down while it reboots; 20 by default. */
  readonly rebootMs?: number;
  /** Called when the host goes down, and when it is back. */
  readonly onReboot?: (phase: "down" | "up", host: Host) => void | Promise<void>;
}

export interface Host extends Omit<Model, "answer" | "boot" | "facts"> {
  readonly socketPath: string;
  readonly facts: () => HostFacts & { readonly isUp: boolean; readonly reboots: number };
  /** Reboots without being asked. */
  readonly reboot: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const realClock = {
  now: () => Date.now(),
  after(ms: number, run: () => void): () => void {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Starts a host; `stop` ends it and removes its socket. */
export async function startHost({ rebootMs = 20, onReboot, ...options }: HostOptions = {}): Promise<Host> {
  const folder = await mkdtemp(join(tmpdir(), "host-"));
  const socketPath = join(folder, "api.sock");
  const { answer, boot, facts, ...model } = createHost(options, realClock);
  let isStopped = false;
  let reboots = 0;
  let server: Server | undefined;

  async function reboot(): Promise<void> {
    if (server === undefined) return;
    reboots += 1;
    await close();
    await onReboot?.("down", host);
    await pause(rebootMs);
    boot();
    if (isStopped) return;
    await serve();
    await onReboot?.("up", host);
  }

  function respond({ method = "", url = "" }: IncomingMessage, response: ServerResponse): void {
    const { status, body, reboots: goesDown } = answer(method, url);
    response.writeHead(status, body.startsWith("{") ? { "content-type": "application/json" } : {}).end(body);
    if (goesDown) response.once("close", () => void reboot());
  }

  async function serve(): Promise<void> {
    const next = createServer(respond);
    await new Promise<void>((resolve) => next.listen(socketPath, resolve));
    server = next;
  }

  async function close(): Promise<void> {
    const going = server;
    server = undefined;
    going?.closeAllConnections();
    if (going) await new Promise((resolve) => going.close(resolve));
  }

  const host: Host = {
    ...model,
    socketPath,
    facts: () => ({ ...facts(), isUp: server !== undefined, reboots }),
    reboot,
    async stop() {
      isStopped = true;
      await close();
      await rm(folder, { recursive: true, force: true });
    },
  };
  await serve();
  return host;
}
