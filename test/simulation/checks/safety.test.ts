/** The oracle of checks against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { drawFrom } from "../draw.ts";
import { NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import { drawShape } from "../shape.ts";
import { GATES, gateObject, type GateShape, PHASED, PHASED_ROLLOUTS, phasedObject } from "./objects.ts";
import type { Verdict } from "./prometheus.ts";
import { createCheckSafety } from "./safety.ts";

const ZONE = "ingester-zone-a";
const CHECK = { successWhen: "NoData", initialDelaySeconds: 0, periodSeconds: 10, successThreshold: 2 } as const;
const GATE: GateShape = {
  ...CHECK,
  failureThreshold: undefined,
  last: "good",
  when: ["BeforeFirstZone", "BetweenZones"],
  onError: "Wait",
};
const RECONCILER: Caller = { actor: "reconciler-1", call: "" };
const HUMAN: Caller = { actor: "human", call: "" };
const BEGIN = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;

const object = (name: string, rest: object = {}, metadata: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  ...rest,
  metadata: {
    name,
    namespace: NAMESPACE,
    uid: name,
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
    ...metadata,
  },
});
const pod = (name: string, revision: string, ready = true): KubeObject =>
  object(
    name,
    { status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] } },
    { labels: { "controller-revision-hash": revision } },
  );
const set = (name: string, { revision = "new", current = "old", partition = 0, replicas = 3 } = {}): KubeObject =>
  object(name, {
    spec: { replicas, updateStrategy: { rollingUpdate: { partition } } },
    status: { updateRevision: revision, currentRevision: current },
  });

interface Stage {
  readonly gate?: Partial<GateShape> & { readonly mode?: string };
  readonly pods?: readonly KubeObject[];
  /** Verdicts of the check, 10 s apart, the last one 10 s ago. */
  readonly told: readonly Verdict[];
  readonly expr?: string;
  /** The revision with which the group was settled. */
  readonly settled?: string;
  /** That with which its last record says so. */
  readonly recorded?: string;
  /** Minutes since the template of the zone is the new one. */
  readonly templateMinutes?: number;
  /** The StatefulSet of the PhasedRollout is made around the pods. */
  readonly remade?: boolean;
  /** A bypass on the zone: so many minutes ahead as it was written, with the new template. */
  readonly bypassMinutes?: number;
  /** The baseline of the check was asked so; not at all if undefined. */
  readonly toldBaseline?: readonly Verdict[];
}

function judge(
  {
    gate = {},
    pods = [0, 1, 2].map((i) => pod(`${ZONE}-${i}`, "old")),
    told,
    expr,
    settled = "old",
    recorded,
    templateMinutes = 20,
    remade = false,
    bypassMinutes,
    toldBaseline = [],
  }: Stage,
  act: (onEvent: (event: StoreEvent, caller: Caller) => void) => void,
): string {
  const violations: string[] = [];
  let time = BEGIN;
  const { mode = "Enforce", ...rest } = gate;
  const guard = gateObject({ ...GATE, ...rest });
  const oracle = createCheckSafety({
    shape: { ...drawShape(drawFrom(1)), zones: [ZONE], replicas: 3 },
    violated: (what) => void violations.push(what),
    listPods: () => pods,
    now: () => time,
    decidedMs: () => 150_000,
  });
  const spec = { ...(guard["spec"] as object), mode };
  // That it begins is recorded.
  const status = { zones: [{ name: ZONE, began: "Now", ...(recorded && { settledRevision: recorded }) }] };
  oracle.onEvent({ type: "ADDED", resource: GATES, object: object("errors", { spec, status }) }, HUMAN);
  const rollout = object(PHASED, {
    spec: phasedObject({ ...GATE, ordered: true, finalCheck: false })["spec"] as object,
  });
  oracle.onEvent({ type: "ADDED", resource: PHASED_ROLLOUTS, object: rollout }, HUMAN);
  if (remade) oracle.onEvent({ type: "ADDED", resource: "statefulsets.apps", object: set(PHASED) }, HUMAN);
  const end = BEGIN + 60 * MINUTE;
  time = end - templateMinutes * MINUTE;
  const until = bypassMinutes === undefined ? "" : new Date(time + bypassMinutes * MINUTE).toISOString();
  const annotations = { "zonewise.dev/bypass-gates-until": until };
  const zoneAt = (revision: string): StoreEvent => {
    const zone = set(ZONE, { revision });
    return {
      type: "MODIFIED",
      resource: "statefulsets.apps",
      object: { ...zone, metadata: { ...zone.metadata, annotations } },
    };
  };
  for (const revision of [settled, settled, "new"]) oracle.onEvent(zoneAt(revision), HUMAN);
  for (const [i, verdict] of told.entries())
    for (const name of expr === undefined ? ["gate", "phased"] : [expr])
      oracle.onAnswer({ at: end - (told.length - i) * 10_000, expr: name, verdict });
  for (const [i, verdict] of toldBaseline.entries())
    oracle.onAnswer({ at: end - (toldBaseline.length - i) * 10_000, expr: 'baseline{group="ingester"}', verdict });
  time = end;
  act(oracle.onEvent);
  return violations.join("; ");
}

const begins = (onEvent: (event: StoreEvent, caller: Caller) => void, caller = RECONCILER): void => {
  const previous = pod(`${ZONE}-0`, "old");
  const metadata = { ...previous.metadata, deletionTimestamp: "2026-01-01T01:00:00Z" };
  onEvent({ type: "MODIFIED", resource: "pods", object: { ...previous, metadata }, previous }, caller);
};

const zonePods = (...revisions: readonly string[]): KubeObject[] =>
  revisions.map((revision, i) => pod(`${ZONE}-${i}`, revision));

const PASSED = ["Success", "Success"] as const;
const COMPARED = { compares: true, successWhen: "WithinBaseline" } as const;

const GATED: readonly (readonly [what: string, Stage, expected: RegExp | undefined])[] = [
  ["that nobody has checked", { told: [] }, /has not passed/],
  ["after too few successes", { told: ["Success"] }, /has not passed/],
  ["after successes in a row", { told: ["Success", "Success"] }, undefined],
  ["after successes with a failure between them", { told: ["Success", "Failure", "Success"] }, /has not passed/],
  ["after successes with an error between them", { told: ["Success", "Error", "Success"] }, /has not passed/],
  ["after an error that counts", { told: ["Success", "Error", "Success"], gate: { onError: "Proceed" } }, undefined],
  ["after successes of another query", { told: ["Success", "Success"], expr: "other" }, /has not passed/],
  ["that a gate only observes", { told: [], gate: { mode: "Observe" } }, undefined],
  ["that the gate is not asked for", { told: [], gate: { when: ["BetweenZones"] } }, undefined],
  ["whose settled group no reconciler has seen", { told: [], recorded: "earlier" }, undefined],
  ["of a corrected template, which had begun with the wrong one", { told: [], settled: "earlier" }, undefined],
  ["that has begun", { told: [], pods: zonePods("old", "old", "new") }, undefined],
  ["of a new template that nobody has checked", { told: [], templateMinutes: 1 }, /has not passed/],
  [
    "by successes from before its template",
    { told: ["Success", "Success", "Success", "Success"], templateMinutes: 0.2 },
    /has not passed/,
  ],
  [
    "after a failure that came long ago, and no answer since",
    { told: ["Success", "Success", ...Array.from({ length: 30 }, () => "Failure" as const)] },
    /has not passed/,
  ],
  ["before its soak time is over", { told: PASSED, gate: { soakSeconds: 1260 } }, /1200000 ms after .*, not 1260000/],
  ["after its soak time", { told: PASSED, gate: { soakSeconds: 1200 } }, undefined],
  ["of a gate that only soaks, too soon", { told: [], gate: { soakSeconds: 1260, asksNothing: true } }, /not 1260000/],
  ["of a gate that only soaks", { told: [], gate: { soakSeconds: 1200, asksNothing: true } }, undefined],
  ["of a gate that nobody can read", { told: PASSED, gate: { asksNothing: true } }, /nobody can read/],
  ["by a candidate without its baseline", { told: PASSED, gate: COMPARED }, /has not passed/],
  [
    "by a baseline that fails",
    { told: PASSED, gate: COMPARED, toldBaseline: ["Failure", "Success"] },
    /has not passed/,
  ],
  ["by a comparison", { told: PASSED, gate: COMPARED, toldBaseline: PASSED }, undefined],
  ["by a bypass that lasts", { told: [], bypassMinutes: 30 }, undefined],
  ["by a bypass that is just over", { told: [], bypassMinutes: 18 }, undefined],
  ["by a bypass that is over", { told: [], bypassMinutes: 10 }, /has not passed/],
  ["by a bypass that was too far ahead", { told: [], bypassMinutes: 2 * 1440 }, /has not passed/],
];

describe("the oracle of gates", () => {
  for (const [what, stage, expected] of GATED)
    it(`${expected ? "condemns" : "accepts"} a zone ${what}`, () => {
      assert.match(judge(stage, begins), expected ?? /^$/);
    });

  it("accepts a pod that a human deletes", () => {
    assert.equal(
      judge({ told: [] }, (onEvent) => begins(onEvent, HUMAN)),
      "",
    );
  });
});

const lowered = (from: object, to: object) => (onEvent: (event: StoreEvent, caller: Caller) => void) =>
  onEvent(
    { type: "MODIFIED", resource: "statefulsets.apps", object: set(PHASED, to), previous: set(PHASED, from) },
    RECONCILER,
  );
const [HELD, ONE] = [{ partition: 2_147_483_647 }, { partition: 2 }];
const dbPods = (...revisions: readonly string[]): KubeObject[] => revisions.map((one, i) => pod(`${PHASED}-${i}`, one));
const OLD = dbPods("old", "old", "old");

describe("the oracle of PhasedRollouts", () => {
  const cases: readonly (readonly [string, Stage, from: object, to: object, RegExp | undefined])[] = [
    ["a pod without checks", { told: ["Success"], pods: OLD }, HELD, ONE, /db-2 is released without its checks/],
    ["a pod after its checks", { told: ["Success", "Success"], pods: OLD }, HELD, ONE, undefined],
    [
      "two pods at once",
      { told: ["Success", "Success"], pods: OLD },
      HELD,
      { partition: 1 },
      /several pods: db-1, db-2/,
    ],
    ["updated pods", { told: [], pods: dbPods("new", "new", "new") }, HELD, { partition: 0 }, undefined],
    ["the way back", { told: [], pods: OLD }, { ...HELD, current: "new" }, { ...ONE, current: "new" }, undefined],
    [
      "a pod that stood before its StatefulSet, without checks, though the template is its only one",
      { told: [], pods: OLD, remade: true },
      { ...HELD, current: "new" },
      { ...ONE, current: "new" },
      /db-2 is released without its checks/,
    ],
    ["a guard that is lowered to the replicas", { told: [], pods: OLD }, HELD, { partition: 3 }, undefined],
  ];
  for (const [what, stage, from, to, expected] of cases)
    it(`${expected ? "condemns" : "accepts"} a partition that releases ${what}`, () => {
      assert.match(judge(stage, lowered(from, to)), expected ?? /^$/);
    });

  it("condemns a second pod by the checks of the first", () => {
    const both = (onEvent: (event: StoreEvent, caller: Caller) => void): void => {
      lowered(HELD, ONE)(onEvent);
      lowered(ONE, { partition: 1 })(onEvent);
    };
    assert.match(judge({ told: ["Success", "Success"], pods: OLD }, both), /^db-1 is released without its checks$/);
  });
});
