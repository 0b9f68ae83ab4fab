/**
 * A process that is frozen before it sends a request sends nothing after its deadline, and never asks the server for
 * more than the remaining time.
 */
import assert from "node:assert/strict";
import { Agent, type AgentOptions } from "node:https";
import { connect, type ConnectionOptions } from "node:tls";
import { describe, it } from "node:test";
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { connectCluster, type ClusterOptions } from "../../infra/kubernetes/connect-cluster.ts";
import { pods } from "../../infra/kubernetes/resources.ts";
import { caPem, connectionTo, failure, json, stage } from "./stage.ts";

const ref = { namespace: "cache", name: "zone-a-0" };
const ok = json({ metadata: { resourceVersion: "1" } });
const DEADLINE_MS = 2000;

/** Freezes the process for this long, by one of the two clocks or both. */
interface Freeze {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

const FREEZES: readonly [name: string, Freeze][] = [
  ["stopped", { wallMs: 60_000, monotonicMs: 60_000 }],
  ["suspended with its machine, whose monotonic clock stands still", { wallMs: 60_000, monotonicMs: 0 }],
  ["stopped while the wall clock is set back", { wallMs: -60_000, monotonicMs: 60_000 }],
];

/** A clock that stands still, and freezes the process once it is at `step`. */
function freezing(freeze: Freeze) {
  const time = { wall: Date.UTC(2026, 0, 1), monotonic: 0 };
  let step: Step | undefined;
  const at = (reached: Step): void => {
    if (reached !== step) return;
    step = undefined;
    time.wall += freeze.wallMs;
    time.monotonic += freeze.monotonicMs;
  };
  const clock: Clock = {
    now: () => time.wall,
    monotonic: () => time.monotonic,
    sleep: async () => at("sleep"),
  };
  return { clock, at, freezeAt: (next: Step): void => void (step = next) };
}

type Step = "credentials" | "sleep" | "connecting" | "handshake" | "reuse";

class FreezingAgent extends Agent {
  readonly at: (step: Step) => void;
  constructor(at: (step: Step) => void) {
    super({ keepAlive: true });
    this.at = at;
  }
  override createConnection(options: AgentOptions): ReturnType<typeof connect> {
    const socket = connect({ ...(options as ConnectionOptions), ca: caPem, servername: "localhost" });
    socket.once("connect", () => this.at("connecting"));
    socket.once("secureConnect", () => this.at("handshake"));
    return socket;
  }
  override reuseSocket(...call: Parameters<Agent["reuseSocket"]>): void {
    super.reuseSocket(...call);
    this.at("reuse");
  }
}

const STEPS: readonly {
  readonly name: string;
  readonly step: Step;
  /** Requests that the server has answered before. */
  readonly before: number;
  readonly options?: Partial<ClusterOptions>;
  readonly first?: typeof ok;
}[] = [
  { name: "while the credentials are read", step: "credentials", before: 0 },
  { name: "while it connects", step: "connecting", before: 0 },
  { name: "during the TLS handshake", step: "handshake", before: 0 },
  { name: "as it takes an idle connection", step: "reuse", before: 1 },
  { name: "while it waits for a token", step: "sleep", before: 1, options: { rate: { qps: 1, burst: 1 } } },
  {
    name: "while it waits for the server's Retry-After",
    step: "sleep",
    before: 1,
    first: failure(429, "TooManyRequests", "no", { "retry-after": "1" }),
  },
];

describe("a process that was frozen for longer than its write may take", () => {
  for (const [how, freeze] of FREEZES)
    for (const { name, step, before, options, first = ok } of STEPS)
      it(`${how}, ${name}, sends nothing`, async (t) => {
        const { server, seen } = await stage([first, ok]);
        const { clock, at, freezeAt } = freezing(freeze);
        const agent = new FreezingAgent(at);
        t.after(() => agent.destroy());
        const authorize = async () => {
          at("credentials");
          return { ...(await connectionTo(server).authorize()), agent };
        };
        const cluster = connectCluster({ server, authorize, close: () => {} }, { timeoutMs: 5000, clock, ...options });
        const write = (): Promise<unknown> =>
          cluster.patch(pods, { ...ref, type: "merge", body: {} }, { deadlineMs: DEADLINE_MS });
        if (before > 0 && first === ok) await write();
        freezeAt(step);
        await assert.rejects(write(), { code: "Timeout", message: /its time was up before it could be sent/ });
        assert.equal(seen.length, before);
      });

  it("for less, sends the server the remaining time, no more, and never 0", async (t) => {
    for (const [wallMs, timeout] of [
      [1500, "500ms"],
      [1999, "1ms"],
      [0, "2000ms"],
    ] as const) {
      const { server, seen } = await stage([ok]);
      const { clock, at, freezeAt } = freezing({ wallMs, monotonicMs: 0 });
      const agent = new FreezingAgent(at);
      t.after(() => agent.destroy());
      const authorize = async () => ({ ...(await connectionTo(server).authorize()), agent });
      const cluster = connectCluster({ server, authorize, close: () => {} }, { timeoutMs: 5000, clock });
      freezeAt("handshake");
      await cluster.remove(pods, { ...ref, preconditions: { uid: "u" } }, { deadlineMs: DEADLINE_MS });
      assert.equal(seen[0]?.query["timeout"], timeout);
    }
  });
});

describe("the deadline of a list", () => {
  /** A server with `pages` pages, each of which takes 400 ms, and how it is read. */
  async function listing(
    pages: number,
    read: (cluster: Cluster) => AsyncIterable<unknown>,
  ): Promise<{ work: Promise<void>; requests: () => number }> {
    let time = 0;
    const clock: Clock = { now: () => time, monotonic: () => time, sleep: () => Promise.resolve() };
    let answered = 0;
    const { cluster, seen } = await stage(
      [
        (...exchange) => {
          time += 400;
          json({ metadata: { resourceVersion: "1", ...(++answered < pages && { continue: "more" }) }, items: [] })(
            ...exchange,
          );
        },
      ],
      { clock },
    );
    const work = (async () => {
      for await (const page of read(cluster)) assert.ok(page);
    })();
    return { work, requests: () => seen.length };
  }

  it("bounds all its pages together: the remaining time shrinks from page to page, and then nothing is requested", async () => {
    const { work, requests } = await listing(9, (cluster) => cluster.list(pods, {}, { deadlineMs: 1000 }));
    await assert.rejects(work, { code: "Timeout" });
    assert.equal(requests(), 3);
  });

  it("is each page's own when none is given: a long list of quick pages is read to its end", async () => {
    const { work, requests } = await listing(20, (cluster) => cluster.list(pods, {}));
    await work;
    assert.equal(requests(), 20);
  });
});
