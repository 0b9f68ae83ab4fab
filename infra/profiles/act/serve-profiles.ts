/**
 * Serves profiles of this process on its loopback address, in place of Go's `/debug/pprof`. Loaded only if a port is
 * configured. The inspector is used from within: no port of a debugger is opened, and nothing can be executed.
 *
 *   request --refused--> its status, and the reason
 *           --another one is under way--> 429
 *           --otherwise--> start --seconds, or the caller goes--> stop -> the profile as JSON
 */
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import { Session } from "node:inspector/promises";
import type { AddressInfo } from "node:net";
import type { Clock } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { type ProfileRequest, readProfileRequest } from "../profile-request.ts";

/** Only processes in the pod, and requests that are forwarded into it, reach this address. */
const LOOPBACK = "127.0.0.1";

/** Milliseconds for the head of a request, which has no body. */
const HEAD_MS = 10_000;

export interface ProfileServer {
  /** The port that it listens on. */
  readonly port: number;
  readonly close: () => void;
}

interface Tools {
  readonly clock: Pick<Clock, "sleep">;
  readonly log: Log;
  /** The name of the process, for the names of files. */
  readonly service: string;
}

/**
 * Resolves once it listens; `port` 0 takes a free one. If the port is in use, logs that and resolves with undefined:
 * profiles are optional. The server does not keep the process alive.
 */
export async function serveProfiles(port: number, tools: Tools): Promise<ProfileServer | undefined> {
  let isBusy = false;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method, url, headers } = request;
    const asked = readProfileRequest({ method, url, host: headers.host });
    if ("status" in asked) return refuse(response, asked.status, asked.message);
    if (isBusy) return refuse(response, 429, "another profile is under way, try again once it has ended");
    isBusy = true;
    try {
      await answerProfile(asked, response, tools);
    } catch (error) {
      tools.log.warn("a profile could not be taken", { kind: asked.kind, error: messageOf(error) });
      if (!response.headersSent) refuse(response, 500, "the profile could not be taken; the log says why");
    } finally {
      isBusy = false;
    }
  };
  const server = http.createServer(
    { headersTimeout: HEAD_MS, requestTimeout: HEAD_MS },
    (request, response) => void answer(request, response),
  );
  server.unref();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ port, host: LOOPBACK }, resolve);
    });
  } catch (error) {
    tools.log.warn("no profiles are served", { port, error: messageOf(error) });
    return undefined;
  }
  const { port: taken } = server.address() as AddressInfo;
  tools.log.info("listening", { what: "profiles", address: LOOPBACK, port: taken });
  return { port: taken, close: () => server.close().closeAllConnections() };
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(`${message}\n`);
}

async function answerProfile(
  { kind, extension, seconds }: ProfileRequest,
  response: ServerResponse,
  { clock, log, service }: Tools,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  log.info("taking a profile", { kind, seconds });
  const profile = await TAKE[kind](() => clock.sleep(seconds * 1000, gone.signal));
  if (gone.signal.aborted) return;
  response
    .writeHead(200, {
      "content-type": "application/json",
      "content-disposition": `attachment; filename="${service}.${extension}"`,
    })
    .end(JSON.stringify(profile));
}

/** Bytes between two samples of allocations, as V8 takes by default. */
const SAMPLING_INTERVAL = 32_768;

/**
 * Each function starts a profile, waits, and resolves with it. Disconnecting the session ends all recording in the
 * process.
 */
const TAKE: Readonly<Record<ProfileRequest["kind"], (wait: () => Promise<void>) => Promise<object>>> = {
  async cpu(wait) {
    const session = connect();
    try {
      await session.post("Profiler.enable");
      await session.post("Profiler.start");
      await wait();
      return (await session.post("Profiler.stop")).profile;
    } finally {
      session.disconnect();
    }
  },
  // Samples contain only functions and sizes. A snapshot would contain tokens and keys, stop the process for seconds,
  // and take as much memory again.
  async heap(wait) {
    const session = connect();
    try {
      await session.post("HeapProfiler.startSampling", { samplingInterval: SAMPLING_INTERVAL });
      await wait();
      return (await session.post("HeapProfiler.stopSampling")).profile;
    } finally {
      session.disconnect();
    }
  },
};

function connect(): Session {
  const session = new Session();
  session.connect();
  return session;
}
