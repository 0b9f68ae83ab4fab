import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../../infra/clock.ts";
import { hasCode } from "../../../../infra/errors.ts";
import type { PodHttp } from "../../../../infra/pod-http.ts";
import { preparePods } from "../../../../reconciler/scaling/act/scale-group.ts";
import { planPreparation } from "../../../../reconciler/scaling/delayed.ts";
import { zone } from "../../builders.ts";

const delay = { ms: 60_000, url: new URL("http://pod/prepare") };
const never = new AbortController().signal;

/** POSTs to all pods of a zone with so many pods; `seen` counts the requests. */
async function prepare(replicas: number, send: PodHttp["send"], signal = never) {
  let seen = 0;
  const http: PodHttp = { send: (...args) => (seen++, send(...args)) };
  const all = { ...zone(), replicas };
  const { leaving } = planPreparation(all, 0, { url: delay.url, clusterDomain: "cluster.local." });
  const result = await preparePods(
    { action: "preparePods", zone: all, wanted: 0, pods: leaving, delay },
    { podHttp: http, clock: { ...systemClock, now: () => 1_000_000_000_000 }, stop: signal },
  ).catch((error: unknown) => error);
  return { result, seen };
}

describe("preparing pods for removal", () => {
  it("returns the last pod whose delay is not over", async () => {
    const { result } = await prepare(5, async (_method, url) => {
      const seconds = url.includes("-a-3.") ? 999_999_990 : 999_999_000;
      return { status: 200, body: JSON.stringify({ timestamp: seconds }) };
    });
    assert.deepEqual(result, { wanted: 0, youngest: { place: 3, preparedAt: 999_999_990_000 } });
  });

  it("calls of a million pods only enough to know that one refuses, and repeats nothing of its answer", async () => {
    const { result, seen } = await prepare(1_000_000, async () => ({ status: 500, body: "secret" }));
    assert.ok(seen <= 32, String(seen));
    const { failure } = result as { failure: string };
    assert.match(
      failure,
      /^ingester-zone-a-0 at https?:\/\/ingester-zone-a-0\.\S+: it answered 500, and the answer is not \{"timestamp": <Unix seconds>\}$/,
    );
  });

  it("calls no further pod once the run ends", async () => {
    const stop = new AbortController();
    const { result, seen } = await prepare(
      1_000_000,
      async (_method, url) => {
        await new Promise(setImmediate);
        if (url.includes("-a-100.")) stop.abort();
        return { status: 200, body: '{"timestamp": 1}' };
      },
      stop.signal,
    );
    assert.ok(hasCode(result, "Cancelled"));
    assert.ok(seen < 200, String(seen));
  });
});
