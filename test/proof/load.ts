/**
 * Writes to JetStream and reads from it, as an application does, and remembers what was acknowledged. Each stream has one writer,
 * which numbers its messages and sends the next one only once the one before is acknowledged. So all numbers up to the last are.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream, jetstreamManager, type JetStreamClient } from "@nats-io/jetstream";
import { connect, nanos, type NatsConnection } from "@nats-io/transport-node";
import { until } from "../cluster/stage/until.ts";

export interface Login {
  readonly server: string;
  readonly user: string;
  readonly pass: string;
}

/** What became of one stream's messages. Times are those of `performance.now()`. */
interface Journal {
  readonly stream: string;
  /** When message 1, 2, ... was acknowledged. */
  readonly acknowledged: readonly number[];
  /** The last number that the reader saw; it sees each once, in order. */
  readonly read: () => number;
}

export interface Load {
  readonly journals: readonly Journal[];
  /** Adds streams, which JetStream places on the servers with the fewest, and a writer and a reader each. */
  readonly grow: (count: number) => Promise<void>;
  /** Resolves once every stream has acknowledged a message that was sent after the call, and its reader has read it. */
  readonly acknowledges: () => Promise<void>;
  /** Reads all streams from the start. Resolves with how many acknowledged messages are not there. */
  readonly countLost: () => Promise<number>;
  /** The longest time for which this process itself stood still since the last call. */
  readonly takePause: () => number;
  readonly close: () => Promise<void>;
}

/** Milliseconds between two messages of a stream. */
const PERIOD_MS = 50;
/** Until a message without an acknowledgement is sent again, under the same id. */
export const ACK_MS = 1000;
const PAUSE_MS = 50;
/** Until all that was acknowledged has to be readable: a replica that serves a read may be behind. */
const READABLE_MS = 60_000;

export const dial = ({ server, user, pass }: Login): Promise<NatsConnection> =>
  connect({
    servers: server,
    user,
    pass,
    // The Service knows who is ready.
    ignoreClusterUpdates: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    reconnectJitter: 100,
    timeout: 1000,
    pingInterval: 2000,
    waitOnFirstConnect: true,
  });

export async function startLoad(login: Login, streams: number): Promise<Load> {
  const ended = new AbortController();
  const writers: Writer[] = [];
  const admin = await dial(login);
  const pauses = watchPauses(ended.signal);
  const grow: Load["grow"] = async (count) => {
    for (let added = 0; added < count; added++) {
      const stream = `orders-${writers.length + 1}`;
      await until(`JetStream makes ${stream}`, () => createStream(admin, stream));
      writers.push(await startWriter(login, stream, ended.signal));
    }
  };
  await grow(streams);
  return {
    journals: writers,
    grow,
    takePause: pauses,
    async acknowledges() {
      const before = writers.map(({ acknowledged }) => acknowledged.length);
      // The message that was on its way at the call is not counted.
      await until("every stream acknowledges messages, and they are read", () =>
        writers.every(({ acknowledged, read }, i) => Math.min(acknowledged.length, read()) > (before[i] ?? 0) + 1),
      );
    },
    async countLost() {
      let lost = 0;
      await until(
        "all that was acknowledged is readable",
        async () => {
          const counts = await Promise.all(writers.map((writer) => countMissing(jetstream(admin), writer)));
          lost = counts.reduce((sum, count) => sum + count, 0);
          return lost === 0;
        },
        READABLE_MS,
      ).catch((error: unknown) => {
        if (lost === 0) throw error;
      });
      return lost;
    },
    async close() {
      ended.abort();
      await Promise.all(writers.map(({ stop }) => stop()));
      await admin.close();
    },
  };
}

async function createStream(connection: NatsConnection, name: string): Promise<boolean> {
  const manager = await jetstreamManager(connection);
  await manager.streams.add({
    name,
    subjects: [name],
    num_replicas: 3,
    duplicate_window: nanos(600_000),
  });
  return true;
}

interface Writer extends Journal {
  readonly stop: () => Promise<void>;
}

async function startWriter(login: Login, stream: string, signal: AbortSignal): Promise<Writer> {
  const connection = await dial(login);
  const client = jetstream(connection);
  const acknowledged: number[] = [];
  const write = async (): Promise<void> => {
    while (!signal.aborted) {
      const begun = performance.now();
      const number = acknowledged.length + 1;
      try {
        await client.publish(stream, String(number), { msgID: `${stream}-${number}`, timeout: ACK_MS });
        acknowledged.push(performance.now());
      } catch {
        // No leader, or no connection: it is sent again, and stored once.
      }
      await sleep(Math.max(0, begun + PERIOD_MS - performance.now()));
    }
  };
  let read = 0;
  const follow = async (): Promise<void> => {
    while (!signal.aborted)
      await readFrom(client, stream, read + 1, signal, (number) => {
        // A reader sees each number once, in order: anything else is a fault of the database, or of this program.
        if (number !== read + 1) throw new Error(`${stream}: ${number} was read after ${read}`);
        read = number;
      }).catch(() => sleep(PAUSE_MS));
  };
  const running = [write(), follow()];
  return {
    stream,
    acknowledged,
    read: () => read,
    async stop() {
      await connection.close();
      await Promise.allSettled(running);
    },
  };
}

/** Calls `onNumber` with each message from the one with this number on, until the signal. */
async function readFrom(
  client: JetStreamClient,
  stream: string,
  number: number,
  signal: AbortSignal,
  onNumber: (number: number, pending: number) => void,
): Promise<void> {
  const consumer = await client.consumers.get(stream, { opt_start_seq: number, deliver_policy: "by_start_sequence" });
  const messages = await consumer.consume({ max_messages: 500, expires: 5000, idle_heartbeat: 1000 });
  for await (const message of messages) {
    onNumber(Number(message.string()), message.info.pending);
    if (signal.aborted) break;
  }
}

/** How many of a stream's acknowledged messages a reading from its start does not find. */
async function countMissing(client: JetStreamClient, { stream, acknowledged }: Journal): Promise<number> {
  const wanted = acknowledged.length; // it grows meanwhile
  const found = new Set<number>();
  const end = new AbortController();
  await readFrom(client, stream, 1, end.signal, (number, pending) => {
    found.add(number);
    if (pending === 0 || found.size >= wanted) end.abort();
  });
  return Array.from({ length: wanted }, (_, i) => i + 1).filter((number) => !found.has(number)).length;
}

/** Measures how late a timer is: for so long nothing was sent, and no answer read. */
function watchPauses(signal: AbortSignal): () => number {
  let longest = 0;
  const watch = async (): Promise<void> => {
    while (!signal.aborted) {
      const begun = performance.now();
      await sleep(PAUSE_MS);
      longest = Math.max(longest, performance.now() - begun - PAUSE_MS);
    }
  };
  void watch();
  return () => {
    const taken = longest;
    longest = 0;
    return taken;
  };
}
