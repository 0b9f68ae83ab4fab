import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import type { Samples } from "../../../infra/metrics/registry.ts";
import { formatTotals, parseTotals, TOTALS } from "../../../infra/metrics/totals.ts";
import { createLeaseTotals } from "../../../reconciler/run/session.ts";

const flat = (series: Samples): Record<string, number> =>
  Object.fromEntries(
    [...series].flatMap(([name, samples]) =>
      samples.map(({ labels, value }) => [`${name}${JSON.stringify(labels)}`, value]),
    ),
  );
const TICKS = 'zonewise_ticks_total{"result":"ok"}';

/** A process that has taken the Lease, with as many ticks that went well. */
async function run(annotations: Map<string, string>, ticks: number): Promise<void> {
  const metrics = createMetrics();
  const totals = await createLeaseTotals(annotations, metrics);
  for (let i = 0; i < ticks; i++) {
    metrics.tickDone("ok");
    metrics.budgets.decided({ reason: "allowed", status: 200 });
    await totals.record(Date.parse("2026-01-01T00:00:00Z") + i * 1000);
  }
}

describe("totals on the Lease", () => {
  it("go on from process to process", async () => {
    const annotations = new Map<string, string>();
    for (const ticks of [3, 4]) await run(annotations, ticks);
    const { passes, lastTick, series } = parseTotals(annotations.get(TOTALS));
    assert.deepEqual([passes, lastTick], [7, "2026-01-01T00:00:03Z"]);
    assert.deepEqual(flat(series), {
      [TICKS]: 7,
      'rollout_operator_zpdb_eviction_requests_total{"reason":"allowed","status":"200","process":"reconciler"}': 7,
    });
  });

  it("of a process that takes the Lease again count nothing twice, and add to what another has counted meanwhile", async () => {
    const annotations = new Map<string, string>();
    const metrics = createMetrics();
    const first = await createLeaseTotals(annotations, metrics);
    metrics.tickDone("ok");
    await first.record(0);
    await run(annotations, 10);
    const second = await createLeaseTotals(annotations, metrics);
    metrics.tickDone("ok");
    await second.record(0);
    const { passes, series } = parseTotals(annotations.get(TOTALS));
    assert.deepEqual([passes, flat(series)[TICKS]], [12, 12]);
  });

  it("count a tick that could not read the cluster as failed, and not as one that has passed", async () => {
    const annotations = new Map<string, string>();
    const metrics = createMetrics();
    const totals = await createLeaseTotals(annotations, metrics);
    metrics.tickDone("failed");
    await totals.record(undefined);
    const { passes, lastTick, series } = parseTotals(annotations.get(TOTALS));
    assert.deepEqual(
      [passes, lastTick, flat(series)],
      [0, undefined, { 'zonewise_ticks_total{"result":"failed"}': 1 }],
    );
  });

  it("keep a gauge as it was until the process has measured it, and drop what has gone then", async () => {
    const annotations = new Map<string, string>();
    const first = createMetrics();
    first.failurePolicies([{ type: "ValidatingWebhook", webhook: "a", policy: "Fail" }]);
    await (await createLeaseTotals(annotations, first)).record(0);
    const metrics = createMetrics();
    const totals = await createLeaseTotals(annotations, metrics);
    await totals.record(0);
    assert.equal(Object.keys(flat(parseTotals(annotations.get(TOTALS)).series)).length, 2);
    metrics.failurePolicies([{ type: "ValidatingWebhook", webhook: "b", policy: "Ignore" }]);
    await totals.record(0);
    assert.deepEqual(
      Object.keys(flat(parseTotals(annotations.get(TOTALS)).series)).map((key) => /"webhook":"(.)"/.exec(key)?.[1]),
      ["b", "b"],
    );
  });

  it("go on where somebody has written what is no sample", async () => {
    const samples = [null, 7, [null, 1], [[], 1], [{ result: "ok" }, "x"], [{ result: {} }, 1], [{ other: "ok" }, 1]];
    const series = { zonewise_ticks_total: [...samples, [{ result: "ok" }, 5]], unknown: [[null, 1]] };
    const annotations = new Map([[TOTALS, JSON.stringify({ passes: 5, series })]]);
    await run(annotations, 1);
    assert.equal(flat(parseTotals(annotations.get(TOTALS)).series)[TICKS], 6);
  });

  it("that cannot be read count as none", () => {
    for (const text of [
      undefined,
      "",
      "{",
      "7",
      "null",
      '{"passes":"x","series":{"zonewise_ticks_total":7}}',
      '{"series":[1]}',
    ])
      assert.equal(parseTotals(text).passes, 0, String(text));
    fc.assert(fc.property(fc.json(), (text) => typeof parseTotals(text).passes === "number"));
  });

  it("of unknown metrics are dropped", () => {
    const text = formatTotals({ passes: 1, series: new Map([["other", [{ labels: {}, value: 1 }]]]) });
    assert.deepEqual([...parseTotals(text).series], []);
  });
});
