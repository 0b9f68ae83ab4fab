import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { RolloutError } from "../../../../infra/errors.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import type { QueryAnswer } from "../../../../infra/prometheus/answer.ts";
import type { PrometheusClient, PrometheusQuery } from "../../../../infra/prometheus/act/client.ts";
import { createChecker } from "../../../../reconciler/checks/act/ask-prometheus.ts";

const EMPTY: QueryAnswer = { kind: "Vector", samples: 0, warnings: [] };
const query = { url: "http://prom", expr: "up" };
const question = { namespace: "ns", query, dueAt: 0, isTroubled: false };
const never = new AbortController().signal;

/** A cluster with these Secrets, and a Prometheus that answers by `answer`. */
function world({
  secrets = {},
  answer = () => Promise.resolve(EMPTY),
}: { secrets?: Record<string, Record<string, string> | RolloutError>; answer?: PrometheusClient["query"] } = {}) {
  const read: string[] = [];
  const asked: PrometheusQuery[] = [];
  const get = (_resource: unknown, { namespace, name }: { namespace?: string; name: string }) => {
    read.push(`${namespace}/${name}`);
    const found = secrets[name] ?? new RolloutError("NotFound", "no such Secret");
    if (found instanceof RolloutError) return Promise.reject(found);
    return Promise.resolve({
      data: Object.fromEntries(
        Object.entries(found).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
      ),
    });
  };
  const prometheus: PrometheusClient = {
    query: (sent, signal) => {
      asked.push(sent);
      return answer(sent, signal);
    },
  };
  const passed = new EventEmitter();
  const sleep = (ms: number) => new Promise<void>((resolve) => void passed.once(String(ms), resolve));
  const checker = createChecker({
    cluster: { get } as unknown as Cluster,
    prometheus,
    clock: { now: () => 1000, sleep },
  });
  return { checker, read, asked, pass: (ms: number) => passed.emit(String(ms)) };
}

describe("a round of checks", () => {
  it("asks, and says when the answer came", async () => {
    const { checker, asked, read } = world();
    using round = checker.begin(never);
    assert.deepEqual(await round.ask(question), { ...EMPTY, at: 1000 });
    assert.deepEqual([asked, read], [[query], []]);
  });

  it("reads the Secret that the query names, in the namespace of its object, for each query", async () => {
    const { checker, asked, read } = world({ secrets: { login: { token: "t" } } });
    using round = checker.begin(never);
    for (let i = 0; i < 2; i++) await round.ask({ ...question, query: { ...query, secretRef: "login" } });
    assert.deepEqual(read, ["ns/login", "ns/login"]);
    assert.deepEqual(asked[1], { ...query, credentials: { authorization: "Bearer t", secrets: ["t"] } });
  });

  for (const [name, secrets, message] of [
    ["is missing", {}, "Secret login does not exist"],
    [
      "may not be read",
      { login: new RolloutError("Forbidden", "no") },
      "Secret login may not be read: the reconciler has no right to it",
    ],
    ["could not be read", { login: new RolloutError("Timeout", "slow") }, "Secret login could not be read: slow"],
    ["has no credentials", { login: {} }, "Secret login has neither the key token nor the keys username and password"],
  ] as const)
    it(`sends nothing if the Secret ${name}`, async () => {
      const { checker, asked } = world({ secrets });
      using round = checker.begin(never);
      const answer = await round.ask({ ...question, query: { ...query, secretRef: "login" } });
      assert.deepEqual(answer, { kind: "Error", code: "SecretUnusable", message, at: 1000 });
      assert.deepEqual(asked, []);
    });

  it("has at most 16 queries in flight, and gives no turn after 5.5 s; what has no answer after 10 s is an error, the others are left", async () => {
    const answer = (_query: PrometheusQuery, signal?: AbortSignal) =>
      new Promise<QueryAnswer>((resolve) =>
        signal?.addEventListener("abort", () => resolve({ kind: "Error", code: "Unreachable", message: "" })),
      );
    const { checker, asked, pass } = world({ answer });
    using round = checker.begin(never);
    const answers = Promise.all(
      Array.from({ length: 200 }, (_, i) => round.ask({ ...question, isTroubled: i % 2 === 0 })),
    );
    await setImmediate();
    assert.equal(asked.length, 16);
    pass(5500);
    await setImmediate();
    pass(10_000);
    const given = (await answers).filter((one) => one !== undefined);
    assert.equal(given.length, 16);
    assert.deepEqual(given[0], {
      kind: "Error",
      code: "Unreachable",
      message: "no answer in the 10 s that a tick takes for its checks",
      at: 1000,
    });
    assert.equal(asked.length, 16);
  });

  it("takes an answer that comes as the time ends", async () => {
    const answer = (_query: PrometheusQuery, signal?: AbortSignal) =>
      new Promise<QueryAnswer>((resolve) => signal?.addEventListener("abort", () => resolve(EMPTY)));
    const { checker, pass } = world({ answer });
    using round = checker.begin(never);
    const asking = round.ask(question);
    await setImmediate();
    pass(10_000);
    assert.deepEqual(await asking, { ...EMPTY, at: 1000 });
  });

  it("leaves a query without an answer whose tick ends before", async () => {
    const stop = new AbortController();
    const answer = (_query: PrometheusQuery, signal?: AbortSignal) =>
      new Promise<QueryAnswer>((resolve) =>
        signal?.addEventListener("abort", () => resolve({ kind: "Error", code: "Unreachable", message: "" })),
      );
    const { checker } = world({ answer });
    using round = checker.begin(stop.signal);
    const asking = round.ask(question);
    await setImmediate();
    stop.abort();
    assert.equal(await asking, undefined);
  });

  it("ends with the tick", async () => {
    const stop = new AbortController();
    const { checker, asked } = world();
    using round = checker.begin(stop.signal);
    stop.abort();
    assert.equal(await round.ask(question), undefined);
    assert.deepEqual(asked, []);
  });
});
