/** The oracle of single writes against requests that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createWriteSafety } from "./writes.ts";

type Request = readonly [actor: string, sentAt: number, method: string, path: string, body: object, appliedAt?: number];

const SET = "/apis/apps/v1/namespaces/zonewise/statefulsets/a";
const POD = "/api/v1/namespaces/zonewise/pods/a-0";
const lease = (holder: string, renewTime: string): object => ({
  metadata: { name: "zonewise-reconciler", resourceVersion: "1" },
  spec: { holderIdentity: holder, leaseDurationSeconds: 15, renewTime },
});
const renewed = (sentAt: number, holder = "reconciler-1_x"): Request => [
  "reconciler-1",
  sentAt,
  "PUT",
  "/apis/coordination.k8s.io/v1/namespaces/zonewise/leases/zonewise-reconciler",
  lease(holder, String(sentAt)),
];
/** Another process writes the Lease: as its own, or as it is, to say that it waits. */
const written = (sentAt: number, holder: string, renewedAt = sentAt): Request => [
  "reconciler-2",
  sentAt,
  "PUT",
  "/apis/coordination.k8s.io/v1/namespaces/zonewise/leases/zonewise-reconciler",
  lease(holder, String(renewedAt)),
];
const deleted = (sentAt: number, query: string, appliedAt = sentAt): Request => [
  "reconciler-1",
  sentAt,
  "DELETE",
  `${POD}${query}`,
  {},
  appliedAt,
];
const versioned = { metadata: { resourceVersion: "1" } };

const CASES: readonly (readonly [string, readonly Request[], RegExp | undefined])[] = [
  ["a deletion that ends within the Lease", [renewed(0), deleted(1000, "?timeout=9000ms")], undefined],
  ["a deletion that may end later", [renewed(0), deleted(1001, "?timeout=9000ms")], /1 ms after its Lease may pass/],
  ["a deletion without a time limit", [renewed(0), deleted(1, "")], /Infinity ms/],
  ["a deletion within a later renewal", [renewed(0), renewed(5000), deleted(9000, "?timeout=6000ms")], undefined],
  ["a deletion without a Lease", [deleted(0, "?timeout=1ms")], /Lease/],
  ["a deletion after the Lease was given back", [renewed(0), renewed(1, ""), deleted(2, "?timeout=1ms")], /Lease/],
  [
    "a deletion that arrives after its Lease was given back",
    [renewed(0), renewed(9, ""), deleted(8, "?timeout=1ms", 10)],
    undefined,
  ],
  [
    "a deletion whose answer was not waited for as the Lease was given back",
    [renewed(0), renewed(9, ""), deleted(8, "?timeout=2ms", 10)],
    /reconciler-1 has not waited for DELETE .* before it gave its Lease back/,
  ],
  [
    "a patch of a StatefulSet that may end later",
    [renewed(0), ["reconciler-1", 0, "PATCH", `${SET}/status?timeout=10001ms`, versioned]],
    /1 ms after its Lease may pass/,
  ],
  [
    "a patch of a StatefulSet without a version",
    [["webhooks-1", 0, "PATCH", SET, { spec: {} }]],
    /without the version/,
  ],
  ["a patch of a StatefulSet with one", [["webhooks-1", 0, "PATCH", SET, versioned]], undefined],
  [
    "a JSON patch that tests the version",
    [
      [
        "certificates-1",
        0,
        "PATCH",
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/x",
        [{ op: "test", path: "/metadata/resourceVersion", value: "1" }],
      ],
    ],
    undefined,
  ],
  ["a replacement without a version", [["webhooks-1", 0, "PUT", "/api/v1/secrets/x", { metadata: {} }]], /version/],
  ["a patch of a pod without its UID", [["reconciler-1", 0, "PATCH", POD, versioned]], /without the UID/],
  ["a patch of a pod with it", [["reconciler-1", 0, "PATCH", POD, { metadata: { uid: "u" } }]], undefined],
  [
    "a Lease that is taken before its time is over",
    [renewed(0), written(14_999, "reconciler-2_x")],
    /reconciler-2 takes Lease zonewise-reconciler from reconciler-1_x, which has it for 1 ms more/,
  ],
  ["a Lease that is taken once its time is over", [renewed(0), written(15_000, "reconciler-2_x")], undefined],
  [
    "a Lease that is taken although another waits for it",
    [renewed(0), written(9000, "reconciler-1_x", 0), written(15_000, "reconciler-2_x")],
    undefined,
  ],
  [
    "a Lease whose time somebody has changed before another says that it waits",
    [renewed(0), written(9000, "reconciler-1_x", 4000), written(15_000, "reconciler-2_x")],
    undefined,
  ],
  ["a Lease that was given back", [renewed(0), renewed(1, ""), written(2, "reconciler-2_x")], undefined],
  ["what others write", [["human", 0, "PATCH", SET, {}]], undefined],
];

function judge(requests: readonly Request[], suspends = false): string[] {
  const violations: string[] = [];
  let now = 0;
  const oracle = createWriteSafety({ violated: (what) => void violations.push(what), now: () => now, suspends });
  for (const [actor, sentAt, method, path, body, appliedAt = sentAt] of requests) {
    now = appliedAt;
    oracle.onRequest({ actor, call: `${method} ${path}`, sentAt }, method, path, JSON.stringify(body));
  }
  return violations;
}

describe("the oracle of writes", () => {
  for (const [name, requests, expected] of CASES)
    it(`${expected ? "condemns" : "accepts"} ${name}`, () => {
      const violations = judge(requests);
      assert.equal(violations.length, expected ? 1 : 0, violations.join("; "));
      if (expected) assert.match(violations[0] ?? "", expected);
    });

  it("allows machines that stand still what the seconds of an answer do not show, and no more", () => {
    assert.deepEqual(judge([renewed(0), deleted(1000, "?timeout=11000ms")], true), []);
    assert.match(judge([renewed(0), deleted(1001, "?timeout=11000ms")], true).join(), / 2001 ms after its Lease/);
  });
});
