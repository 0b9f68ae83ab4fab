import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { renewalOf, SUCCESSOR, successorOf, untilFree } from "../../../infra/kubernetes/lease-succession.ts";
import type { Lease } from "../../../infra/kubernetes/resources.ts";

function leaseOf(spec: Lease["spec"], annotations: Record<string, string> = {}): Lease {
  return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { annotations }, ...(spec && { spec }) };
}

const held = (renewTime = "2026-01-01T00:00:00.000000Z") =>
  leaseOf({ holderIdentity: "holder", leaseDurationSeconds: 15, renewTime });

const endless = leaseOf({ holderIdentity: "holder", renewTime: "2026-01-01T00:00:00.000000Z" });
/** Of the challenger. */
const durationMs = 30_000;

describe("a Lease of 15 s", () => {
  const CASES: readonly [what: string, Lease | undefined, unchangedMs: number, taken: boolean][] = [
    ["that does not exist", undefined, 0, true],
    ["that was released", leaseOf({ holderIdentity: "", leaseDurationSeconds: 15 }), 0, true],
    ["of the challenger itself", leaseOf({ holderIdentity: "challenger", leaseDurationSeconds: 15 }), 0, true],
    ["without a holder", leaseOf({}), 0, true],
    ["seen for the first time, whose time is long over by any clock", held("2001-01-01T00:00:00.000000Z"), 0, false],
    ["seen for almost its duration", held(), 14_999, false],
    ["seen for its duration", held(), 15_000, true],
    ["seen for its duration, renewed in the future by any clock", held("2099-01-01T00:00:00.000000Z"), 15_000, true],
    ["whose time somebody removed, seen for almost its duration", held(""), 14_999, false],
    ["whose time somebody removed, seen for its duration", held(""), 15_000, true],
    ["whose duration somebody removed, seen for almost ours", endless, 29_999, false],
    ["whose duration somebody removed, seen for ours", endless, 30_000, true],
  ];
  for (const [what, lease, unchangedMs, taken] of CASES)
    it(`${what}: ${taken ? "may be taken" : "is another's"}`, () =>
      assert.equal(untilFree(lease, { identity: "challenger", durationMs, unchangedMs }) <= 0, taken));
});

describe("an announcement", () => {
  const CASES: readonly [what: string, annotation: string | undefined, successor: string | undefined][] = [
    ["that is not there", undefined, undefined],
    ["that was emptied", "", undefined],
    ["of a process", "pod_1", "pod_1"],
    ["of a name with spaces", "pod 1", "pod 1"],
  ];
  for (const [what, annotation, successor] of CASES)
    it(`${what} ${successor === undefined ? "says nothing" : `names ${successor}`}`, () => {
      const lease = leaseOf({}, annotation === undefined ? {} : { [SUCCESSOR]: annotation });
      assert.equal(successorOf(lease), successor);
    });

  it("is no renewal", () => {
    const before = held();
    const after = { ...before, metadata: { resourceVersion: "7", annotations: { [SUCCESSOR]: "pod_1" } } };
    assert.equal(renewalOf(after), renewalOf(before));
    assert.notEqual(renewalOf(held("2026-01-01T00:00:05.000000Z")), renewalOf(before));
  });
});
