/** Whether the reconciler ticks is asked before all else: an API server that does not answer must not hold it up. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createSettings } from "../../../cli/gather/settings.ts";
import { gatherTicking } from "../../../cli/gather/ticking.ts";
import { RolloutError, type ErrorCode } from "../../../infra/errors.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Resource } from "../../../infra/kubernetes/resources.ts";

/** Nothing is there; from the call with this number on nothing answers, and each takes its whole deadline. */
function silentFrom(first: number, code: ErrorCode) {
  const seen = { calls: 0, now: 0 };
  const fail = (call: Call = {}): never => {
    if (++seen.calls < first) throw new RolloutError("NotFound", "not there");
    seen.now += call.deadlineMs ?? 10_000;
    throw new RolloutError(code, "no answer");
  };
  const get: unknown = async (_resource: object, _ref: object, call?: Call) => fail(call);
  // oxlint-disable-next-line require-yield
  const list: unknown = async function* (_resource: object, _query: object, call?: Call) {
    fail(call);
  };
  const cluster = { get, list } as Pick<Cluster, "get" | "list"> as Cluster;
  const clock = { now: () => seen.now, monotonic: () => seen.now, sleep: async () => {} };
  return { seen, reader: { cluster, clock, settings: createSettings({ cluster }) } };
}

describe("an API server that does not answer", () => {
  for (const code of ["Timeout", "Unreachable"] as const)
    for (const namespace of ["cache", ""])
      for (const first of [1, 2, 3, 4])
        it(`costs 5 s and no second call: ${code} of call ${first} for namespace "${namespace}"`, async () => {
          const { seen, reader } = silentFrom(first, code);
          const found = await gatherTicking({ ...reader, namespace });
          assert.ok(seen.now <= 5000, `${seen.now} ms`);
          assert.equal(seen.calls, first);
          assert.equal(found[0]?.reason, "NotKnown");
          assert.match(found[0]?.message ?? "", /no answer/);
        });

  const GROUPS = Array.from({ length: 12 }, (_, i) => ({ metadata: { namespace: `cell-${i}`, name: "ingester" } }));

  it("is said once of all namespaces whose reconciler it keeps secret", async () => {
    const { seen, reader } = silentFrom(1, "Timeout");
    const listed: string[] = [];
    const list: unknown = async function* (resource: Resource) {
      listed.push(resource.plural);
      yield { items: resource.plural === "rolloutgroups" ? GROUPS : [], resourceVersion: "1" };
    };
    const cluster = { ...reader.cluster, list } as Cluster;
    const found = await gatherTicking({ ...reader, cluster, settings: createSettings({ cluster }), namespace: "" });
    assert.deepEqual(listed, ["rolloutgroups", "statefulsets", "cronjobs"]);
    assert.equal(found.length, 1);
    assert.equal(found[0]?.served?.length, GROUPS.length);
    assert.match(found[0]?.message ?? "", /no answer; the same for cell-0, cell-1, .*$/);
    assert.ok(seen.now <= 5100, `${seen.now} ms`);
  });

  it("is asked again for the settings", async () => {
    const { seen, reader } = silentFrom(1, "Timeout");
    await reader.settings("cache");
    await reader.settings("cache");
    assert.equal(seen.calls, 2);
  });
});
