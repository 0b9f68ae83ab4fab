/** The oracle of Leases against requests that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLeaseSafety } from "./leases.ts";

type Request = readonly [actor: string, sentAt: number, method: string, path: string, body: object, appliedAt?: number];

const LEASES = "/apis/coordination.k8s.io/v1/namespaces/zonewise/leases";
const lease = (name: string, holder: string, renewTime: string): object => ({
  metadata: { name },
  spec: { holderIdentity: holder, leaseDurationSeconds: 15, renewTime },
});
/** A process writes the reconcilers' Lease: as its own, or as it is, to say that it waits. */
const written = (actor: string, sentAt: number, holder: string, renewedAt = sentAt): Request => [
  actor,
  sentAt,
  "PUT",
  `${LEASES}/zonewise-reconciler`,
  lease("zonewise-reconciler", holder, String(renewedAt)),
];
const renewed = (sentAt: number, holder = "reconciler-1_x"): Request => written("reconciler-1", sentAt, holder);
const byOther = (sentAt: number, holder = "reconciler-2_x", renewedAt = sentAt): Request =>
  written("reconciler-2", sentAt, holder, renewedAt);
const deleted = (sentAt: number, query: string, appliedAt = sentAt): Request => [
  "reconciler-1",
  sentAt,
  "DELETE",
  `/api/v1/namespaces/zonewise/pods/a-0${query}`,
  {},
  appliedAt,
];
const sent = (sentAt: number, path: string): Request => ["reconciler-1", sentAt, "POST", path, {}];
const prepares = (sentAt: number, holder = "u"): Request => [
  "webhooks-1",
  sentAt,
  "PUT",
  `${LEASES}/zonewise-downscale-1`,
  lease("zonewise-downscale-1", holder, ""),
];
const prepared = (sentAt: number): Request => ["webhooks-1", sentAt, "POST", "http://a-0/prepare", {}];

const CASES: readonly (readonly [name: string, requests: readonly Request[], says?: RegExp])[] = [
  ["a deletion that ends within the Lease", [renewed(0), deleted(1000, "?timeout=9000ms")]],
  ["a deletion that may end later", [renewed(0), deleted(1001, "?timeout=9000ms")], /1 ms after its Lease may pass/],
  ["a deletion without a time limit", [renewed(0), deleted(1, "")], /Infinity ms/],
  ["a deletion within a later renewal", [renewed(0), renewed(5000), deleted(9000, "?timeout=6000ms")]],
  ["a deletion without a Lease", [deleted(0, "?timeout=1ms")], /Lease/],
  ["a deletion whose time is up", [renewed(0), deleted(1, "?timeout=-3ms")], /3 ms after its time was up/],
  [
    "a deletion that arrives after its Lease was given back",
    [renewed(0), renewed(9, ""), deleted(8, "?timeout=1ms", 10)],
  ],
  [
    "a deletion whose answer was not waited for as the Lease was given back",
    [renewed(0), renewed(9, ""), deleted(8, "?timeout=2ms", 10)],
    /has not waited for DELETE .* before it gave its Lease back/,
  ],
  ["a write after the Lease was given back", [renewed(0), renewed(1, ""), sent(2, "/x")], /given its Lease back/],
  ["an Event after that", [renewed(0), renewed(1, ""), sent(2, "/events")]],
  ["a write under another Lease", [renewed(0), renewed(1, ""), renewed(2), sent(3, "/x")]],
  [
    "a Lease that is taken before its time is over",
    [renewed(0), byOther(14_999)],
    /reconciler-2 takes Lease zonewise-reconciler from reconciler-1_x, which has it for 1 ms more/,
  ],
  ["a Lease that is taken once its time is over", [renewed(0), byOther(15_000)]],
  ["one that is taken although another waits", [renewed(0), byOther(9000, "reconciler-1_x", 0), byOther(15_000)]],
  [
    "one whose time somebody has changed before another says that it waits",
    [renewed(0), byOther(9000, "reconciler-1_x", 4000), byOther(15_000)],
  ],
  ["a Lease that was given back", [renewed(0), renewed(1, ""), byOther(2)]],
  ["a preparation under the Lease of downscales", [prepares(0), prepared(14_999)]],
  ["a preparation after its time", [prepares(0), prepared(15_000)], /without the Lease of its group's downscales/],
  ["a preparation after it was given back", [prepares(0), prepares(1, ""), prepared(2)], /without the Lease/],
];

function judge(requests: readonly Request[], suspends = false): string {
  const violations = new Set<string>();
  let now = 0;
  const oracle = createLeaseSafety({ violated: (what) => void violations.add(what), now: () => now, suspends });
  for (const [actor, sentAt, method, path, body, appliedAt = sentAt] of requests) {
    const caller = { actor, call: `${method} ${path}`, sentAt };
    now = sentAt;
    // What was sent before is told of once it arrives.
    if (appliedAt === sentAt) oracle.onSent(caller, method, path);
    now = appliedAt;
    oracle.onRequest(caller, method, path, JSON.stringify(body));
  }
  return [...violations].join("; ");
}

describe("the oracle of Leases", () => {
  for (const [name, requests, says] of CASES)
    it(`${says ? "condemns" : "accepts"} ${name}`, () => assert.match(judge(requests), says ?? /^$/));

  it("allows machines that stand still what the seconds of an answer do not show, and no more", () => {
    assert.equal(judge([renewed(0), deleted(1000, "?timeout=11000ms")], true), "");
    assert.match(judge([renewed(0), deleted(1001, "?timeout=11000ms")], true), / 2001 ms after its Lease/);
  });
});
