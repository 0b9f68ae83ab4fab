import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  formatAnnouncement,
  mayTake,
  renewalOf,
  SUCCESSOR,
  successorOf,
} from "../../../infra/kubernetes/lease-succession.ts";
import type { Lease } from "../../../infra/kubernetes/resources.ts";

const RENEWED = Date.UTC(2026, 0, 1);

function leaseOf(spec: Lease["spec"], annotations: Record<string, string> = {}): Lease {
  return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { annotations }, ...(spec && { spec }) };
}

const held = (renewTime = "2026-01-01T00:00:00.000000Z") =>
  leaseOf({ holderIdentity: "holder", leaseDurationSeconds: 15, renewTime });

const endless = leaseOf({ holderIdentity: "holder", renewTime: "2026-01-01T00:00:00.000000Z" });
/** Of the challenger. */
const durationMs = 30_000;

describe("a Lease of 15 s", () => {
  const CASES: readonly [
    what: string,
    Lease | undefined,
    unchangedMs: number,
    sinceRenewalMs: number | undefined,
    taken: boolean,
  ][] = [
    ["that does not exist", undefined, 0, undefined, true],
    ["that was released", leaseOf({ holderIdentity: "", leaseDurationSeconds: 15 }), 0, undefined, true],
    [
      "of the challenger itself",
      leaseOf({ holderIdentity: "challenger", leaseDurationSeconds: 15 }),
      0,
      undefined,
      true,
    ],
    ["without a holder", leaseOf({}), 0, undefined, true],
    ["seen for almost its duration, no clock", held(), 14_999, undefined, false],
    ["seen for its duration, no clock", held(), 15_000, undefined, true],
    ["seen for its duration, renewed just now by the clocks", held(), 15_000, 0, true],
    ["seen for its duration, renewed in the future by the clocks", held(), 15_000, -60_000, true],
    ["seen for the first time, expired long ago by the clocks", held(), 0, 3_600_000, false],
    ["seen for less than a renewal takes, expired by the clocks", held(), 7499, 3_600_000, false],
    ["seen for as long as a renewal takes, expired by the clocks", held(), 7500, 20_000, true],
    ["seen for as long as a renewal takes, almost expired by the clocks", held(), 7500, 19_999, false],
    ["seen for as long as a renewal takes, renewed in the future by the clocks", held(), 7500, -60_000, false],
    ["whose time somebody removed, seen for less than its duration", held(""), 14_999, 3_600_000, false],
    ["whose time somebody removed, seen for its duration", held(""), 15_000, 3_600_000, true],
    ["whose time nobody can read, seen for less than its duration", held("soon"), 14_999, 3_600_000, false],
    ["whose duration somebody removed, seen for less than ours", endless, 29_999, 3_600_000, false],
    ["whose duration somebody removed, seen for ours", endless, 30_000, 3_600_000, true],
  ];
  for (const [what, lease, unchangedMs, sinceRenewalMs, taken] of CASES)
    it(`${what}: ${taken ? "may be taken" : "is another's"}`, () => {
      const now = sinceRenewalMs === undefined ? undefined : RENEWED + sinceRenewalMs;
      assert.equal(mayTake(lease, { identity: "challenger", durationMs, unchangedMs, now }), taken);
    });
});

describe("an announcement", () => {
  const CASES: readonly [what: string, annotation: string | undefined, successor: string | undefined][] = [
    ["that is not there", undefined, undefined],
    ["that was emptied", "", undefined],
    ["of now", formatAnnouncement("pod_1", RENEWED), "pod_1"],
    ["of a name with spaces", formatAnnouncement("pod 1", RENEWED), "pod 1"],
    ["of 29 s ago", formatAnnouncement("pod_1", RENEWED - 29_000), "pod_1"],
    ["of 30 s ago", formatAnnouncement("pod_1", RENEWED - 30_000), undefined],
    ["of a clock that is far ahead", formatAnnouncement("pod_1", RENEWED + 30_000), undefined],
    ["that is no announcement", "pod_1", undefined],
  ];
  for (const [what, annotation, successor] of CASES)
    it(`${what} ${successor === undefined ? "says nothing" : `names ${successor}`}`, () => {
      const lease = leaseOf({}, annotation === undefined ? {} : { [SUCCESSOR]: annotation });
      assert.equal(successorOf(lease, RENEWED), successor);
    });

  it("is no renewal", () => {
    const before = held();
    const after = {
      ...before,
      metadata: { resourceVersion: "7", annotations: { [SUCCESSOR]: formatAnnouncement("pod_1", RENEWED) } },
    };
    assert.equal(renewalOf(after), renewalOf(before));
    assert.notEqual(renewalOf(held("2026-01-01T00:00:05.000000Z")), renewalOf(before));
  });
});
