/** The oracle of what a RolloutGroup says of what holds it, against what it must condemn, and what is next to it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { createGroupClaims } from "./group-claims.ts";

const zone = (fields: { metadata?: object; type?: string } = {}): KubeObject =>
  ({
    metadata: { name: "a", namespace: "zonewise", generation: 2, ...fields.metadata },
    spec: { updateStrategy: { type: fields.type ?? "OnDelete" } },
  }) as never;
const ROW = { name: "a", generation: 2, observedGeneration: 2, ready: 2, replicas: 2 };
const OTHER = { name: "b", generation: 1, observedGeneration: 1, ready: 2, replicas: 2 };

interface Said {
  readonly set?: KubeObject;
  readonly row?: object;
  readonly other?: object;
  readonly reason?: string;
  /** Why a zone is not scaled. */
  readonly scaling?: string;
  /** Since when an outdated pod of the zone is not ready; the zones are listed at 20. */
  readonly illSince?: number;
  /** Pods of each zone. */
  readonly pods?: readonly KubeObject[];
  /** When the group is written. */
  readonly toldAt?: number;
}

function say({
  set = zone(),
  row = {},
  other = {},
  reason,
  scaling,
  illSince = Infinity,
  pods = [],
  toldAt = 2000,
}: Said): readonly string[] {
  const violations: string[] = [];
  let now = 10;
  const claims = createGroupClaims({
    zones: ["a", "b"],
    violated: (what) => violations.push(what),
    now: () => now,
    listPods: () => pods,
    losses: {
      find: ({ before }: { before: number }) => (illSince < before ? "a-0 is outdated and not ready" : undefined),
    } as never,
    reads: { listedAt: () => 20 },
  });
  const objects = [{ kind: "StatefulSet", name: "a" }];
  const blocked = [reason, scaling].flatMap((one) => (one === undefined ? [] : [{ reason: one, objects }]));
  const status = {
    group: "ingester",
    zones: [
      { ...ROW, ...row },
      { ...OTHER, ...other },
    ],
    holds: blocked,
  };
  const group = { metadata: { name: "ingester", namespace: "zonewise" }, status } as never;
  const event = (resource: string, object: KubeObject) => ({ type: "ADDED", resource, object }) as const;
  claims.onEvent(event("statefulsets.apps", set), undefined);
  now = toldAt;
  claims.onEvent(event("rolloutgroups.zonewise.dev", group), { actor: "reconciler-1", call: "" });
  return violations;
}

const leaving = zone({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } });

const created = (at: string): object => ({ creationTimestamp: `2026-01-01T00:00:${at}Z` });
const OLDER = { metadata: { name: "a-0", ...created("05") } } as never as KubeObject;
/** Its template was taken back, and its pod has the other one. */
const BACK = {
  set: {
    ...zone({ metadata: created("10") }),
    status: { currentRevision: "old", updateRevision: "old" },
  } as KubeObject,
  pods: [{ ...OLDER, metadata: { ...OLDER.metadata, ...created("15") } }],
};

describe("the oracle of what a RolloutGroup says", () => {
  for (const [name, said, expected] of [
    ["a group that nothing holds", {}, undefined],
    ["one with a zone that is being deleted", { set: leaving }, /not ZoneTerminating/],
    ["one that says so", { set: leaving, reason: "ZoneTerminating" }, undefined],
    [
      "one that waits to scale as well",
      { set: leaving, reason: "ZoneTerminating", scaling: "DelayNotReached" },
      /and also what keeps zones from scaling/,
    ],
    ["one that was read before", { set: leaving, row: { generation: 1, observedGeneration: 1 } }, undefined],
    ["one that could not be decided about", { set: leaving, reason: "ReconcileFailed" }, undefined],
    [
      "one with another update strategy",
      { set: zone({ type: "RollingUpdate" }), reason: "ZoneTerminating" },
      /not UpdateStrategyNotOnDelete/,
    ],
    ["one with an old status", { row: { observedGeneration: 1 } }, /not StatusNotObserved/],
    [
      "one with an old status, which says so",
      { row: { observedGeneration: 1 }, reason: "StatusNotObserved" },
      undefined,
    ],
    ["one whose zone waits for a window", { reason: "WindowClosed", illSince: 21 }, undefined],
    [
      "one whose ill zone waits for it",
      { reason: "WindowClosed", illSince: 19 },
      /although a-0 is outdated and not ready/,
    ],
    ["one that waits while it goes back", { reason: "WindowClosed", ...BACK }, /while a goes back/],
    ["one that has gone back since the last tick", { reason: "WindowClosed", ...BACK, toldAt: 1000 }, undefined],
    ["one that does not", { reason: "WindowClosed", ...BACK, pods: [{ ...BACK.pods[0], ...OLDER }] }, undefined],
    ["one that asks a gate", { reason: "GateWaiting", row: { ready: 1 } }, undefined],
    [
      "one that asks it while another zone lacks pods",
      { reason: "GateWaiting", other: { ready: 1 } },
      /while b lacks pods/,
    ],
  ] as const satisfies readonly (readonly [string, Said, RegExp | undefined])[])
    it(`${expected ? "condemns" : "allows"} ${name}`, () =>
      expected ? assert.match(say(said).join(), expected) : assert.deepEqual(say(said), []));
});
