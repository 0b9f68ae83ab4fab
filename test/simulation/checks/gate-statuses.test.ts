/** The oracle of gates' statuses against those that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { drawFrom } from "../draw.ts";
import { NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import { drawShape } from "../shape.ts";
import { createGateStatusSafety, LISTS } from "./gate-statuses.ts";
import { createHistory, createReads } from "./history.ts";
import { GATE, gateObject, type GateShape, GATES } from "./objects.ts";
import type { Verdict } from "./prometheus.ts";

const [A, B] = ["ingester-zone-a", "ingester-zone-b"];
const NOW = Date.parse("2026-01-01T01:00:00Z");
const MINUTE = 60_000;
const SHAPE: GateShape = {
  successWhen: "NoData",
  initialDelaySeconds: 0,
  periodSeconds: 10,
  successThreshold: 2,
  failureThreshold: undefined,
  last: "good",
  when: ["BeforeFirstZone", "BetweenZones"],
  onError: "Wait",
};
const DRAWN = drawShape(drawFrom(1));

const object = (name: string, rest: object = {}, metadata: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion: "1", creationTimestamp: "", ...metadata },
  ...rest,
});

interface Zone {
  readonly updated?: number;
  readonly ready?: number;
  readonly replicas?: number;
  readonly bypass?: string;
}

const zoneOf = (name: string, { updated = 0, ready = 3, replicas = 3, bypass }: Zone): KubeObject =>
  object(
    name,
    {
      spec: { replicas },
      status: {
        replicas,
        readyReplicas: ready,
        updatedReplicas: updated,
        currentReplicas: replicas - updated,
        updateRevision: "new",
      },
    },
    bypass === undefined ? {} : { annotations: { "zonewise.dev/bypass-gates-until": bypass } },
  );

/** A stage before a zone, with the successes of its check in a row and the minute of the last one. */
const stage = (zone: string, state: string, [successes = 0, minute = 58]: readonly number[] = []): object => ({
  point: zone === A ? "BeforeFirstZone" : "BetweenZones",
  zone,
  since: "2026-01-01T00:50:00Z",
  state,
  checks:
    successes === 0
      ? []
      : [
          {
            name: "errors",
            lastVerdict: "Success",
            lastTime: `2026-01-01T00:${minute}:00Z`,
            consecutiveSuccesses: successes,
          },
        ],
});
const zones = (a?: string, b?: string, counts: object = { current: 3, updated: 0, notReady: 0 }): object => ({
  zones: [
    { name: A, settledRevision: "old", ...(a !== undefined && { began: a, counts }) },
    { name: B, settledRevision: "old", ...(b !== undefined && { began: b, counts }) },
  ],
});
const bypasses = (until: string, accepted: boolean): object => ({ bypasses: [{ zone: A, until, accepted }] });

interface Stage {
  readonly before?: object;
  readonly after?: object;
  readonly gate?: Partial<GateShape> & { readonly mode?: string };
  readonly a?: Zone;
  readonly b?: Zone;
  /** Verdicts of the check, a second ago. */
  readonly told?: Verdict;
  /** Minutes ago of another success. */
  readonly toldEarlier?: number;
  /** Minutes ago at which the status before was stored. */
  readonly stored?: number;
  /** Somebody else writes. */
  readonly by?: string;
  /** A minute ago the zones were as new ones are. */
  readonly isLately?: boolean;
  /** A ready pod of the first zone is taken instead of a write. */
  readonly isTaken?: boolean;
  /** Seconds between the list of the gates and the status after, which is stored before the pod is taken. */
  readonly recorded?: number;
}

function judge({
  before = {},
  after = {},
  gate = {},
  a = {},
  b = {},
  told,
  toldEarlier,
  stored = 2,
  by = "reconciler-1",
  isLately = false,
  isTaken = false,
  recorded,
}: Stage): string {
  const violations: string[] = [];
  let time = NOW - 30 * MINUTE;
  const now = (): number => time;
  const [history, reads] = [createHistory(now), createReads(now)];
  const oracle = createGateStatusSafety({
    shape: { ...DRAWN, zones: [A, B], skewMs: 0 },
    violated: (what) => void violations.push(what),
    now,
    history,
    reads,
    toldOf: (expr) =>
      expr !== "gate"
        ? []
        : [
            ...(toldEarlier === undefined
              ? []
              : [{ at: NOW - toldEarlier * MINUTE, expr, verdict: "Success" as const }]),
            ...(told === undefined ? [] : [{ at: NOW - 1000, expr, verdict: told }]),
          ],
  });
  const { mode = "Enforce", ...rest } = gate;
  const spec = { ...(gateObject({ ...SHAPE, ...rest })["spec"] as object), mode };
  const gateWith = (status: object): KubeObject =>
    object(GATE, { spec, status: { identity: "one", startTime: "then", observedGeneration: 1, ...status } });
  for (const [name, zone] of [
    [A, a],
    [B, b],
  ] as const) {
    history.note(name, zoneOf(name, isLately ? {} : zone));
    time = NOW - 1000;
    history.note(name, zoneOf(name, zone));
    time = NOW - 30 * MINUTE;
  }
  time = NOW - stored * MINUTE;
  const previous = gateWith(before);
  history.note(GATE, previous);
  const caller: Caller = { actor: by, call: "", sentAt: NOW };
  time = NOW - 3000;
  for (const key of [LISTS.gates, LISTS.sets]) reads.note({ ...caller, sentAt: time }, key);
  const next = gateWith(after);
  if (recorded !== undefined) {
    time += recorded * 1000;
    history.note(GATE, next);
  }
  time = NOW;
  if (isTaken) oracle.onTaken(`${A}-0`, A, caller);
  else oracle.onEvent({ type: "MODIFIED", resource: GATES, object: next, previous }, caller);
  return violations.join("; ");
}

const [SOON, LATE] = ["2026-01-01T01:10:00Z", "2026-01-04T00:00:00Z"];
const PASSED = [stage(A, "Passed", [2])];
const BEGINS = { before: { ...zones(), stages: PASSED }, after: { ...zones("Now"), stages: PASSED } };
const PASSES = {
  before: { ...zones(), stages: [stage(A, "Waiting", [1])] },
  after: { ...zones(), stages: [stage(A, "Passed", [2, 59])] },
  told: "Success",
} as const;
const OVER = { settledTime: "2026-01-01T01:00:00Z" };
const SETTLED = { ...OVER, zones: [A, B].map((name) => ({ name, settledRevision: "new" })) };
const NEXT = { before: zones("Now", "Earlier"), after: zones("Earlier", "Now") };

const OLD_PASS = stage(A, "Passed", [2, 40]);
const BYPASSED = { stages: [stage(A, "Bypassed")] };
const ASKED = { stages: [stage(A, "Waiting")] };
const ONCE = { stages: [stage(A, "Waiting", [1])] };
const OLDER = { stages: [stage(A, "Waiting", [1, 40])] };
const STARTED = { startTime: "2026-01-01T00:59:00Z" };
const result = { name: "errors", lastVerdict: "Success", consecutiveSuccesses: 1 };
const COMING = { stages: [{ ...stage(A, "Waiting"), checks: [{ ...result, lastTime: "2026-01-01T04:00:00Z" }] }] };
const BACK = { zones: [A, B].map((name) => ({ name, settledRevision: "new" })) };
const ALL_UPDATED = { a: { updated: 3 }, b: { updated: 3 } };

const CASES: readonly (readonly [what: string, Stage, expected: RegExp | undefined])[] = [
  ["a bypass that is accepted", { after: bypasses(SOON, true) }, undefined],
  ["a bypass that is accepted too far ahead", { after: bypasses(LATE, true) }, /which is too far ahead/],
  ["a bypass that is refused", { after: bypasses(LATE, false) }, undefined],
  ["another verdict", { before: bypasses(SOON, false), after: bypasses(SOON, true) }, /a second time/],
  ["the same verdict", { before: bypasses(SOON, true), after: bypasses(SOON, true) }, undefined],
  ["a bypass of a zone without one", { after: { stages: [stage(A, "Bypassed")] } }, /by a bypass, and .*-a has none/],
  ["a bypass of a zone with one", { after: { stages: [stage(A, "Bypassed")] }, a: { bypass: SOON } }, undefined],
  [
    "a bypass of the end, which one zone has",
    { after: { stages: [stage("", "Bypassed")] }, a: { bypass: SOON } },
    /and ingester-zone-b has none/,
  ],
  [
    "a bypass that is over before its zone has begun",
    { before: { stages: [stage(A, "Bypassed")] }, after: { retried: "", stages: [stage(A, "Bypassed")] } },
    /and ingester-zone-a has none/,
  ],
  [
    "a bypass that is over since its zone has begun",
    {
      before: { stages: [stage(A, "Bypassed")] },
      after: { retried: "", stages: [stage(A, "Bypassed")] },
      a: { updated: 1 },
    },
    undefined,
  ],
  ["a zone that begins and waits", { after: { ...zones("Now"), stages: [stage(A, "Waiting")] } }, /and that it waits/],
  [
    "a zone that begins and is only observed",
    { after: { ...zones("Now"), stages: [stage(A, "Waiting")] }, gate: { mode: "Observe" } },
    undefined,
  ],
  ["a zone that begins by its checks", { ...BEGINS, stored: 0.5, toldEarlier: 0.6 }, undefined],
  [
    "a zone that begins by old answers",
    { ...BEGINS, toldEarlier: 3 },
    /keeps a pass of ingester-zone-a by answers that are old/,
  ],
  [
    "a zone that begins without its successes",
    { ...BEGINS, before: { ...zones(), stages: [stage(A, "Passed", [1])] }, stored: 0.5, toldEarlier: 0.6 },
    /keeps a pass of ingester-zone-a without its successes/,
  ],
  [
    "an old pass that is earned again",
    {
      before: { ...zones(), stages: [stage(A, "Passed", [2])] },
      after: { ...zones(), stages: [stage(A, "Passed", [2, 59])] },
      told: "Success",
    },
    undefined,
  ],
  [
    "an old pass of a zone that goes on",
    { before: { ...zones("Now"), stages: PASSED }, after: { ...zones("Now"), retried: "", stages: PASSED } },
    undefined,
  ],
  [
    "results of another zone that are kept",
    {
      before: { ...zones(), stages: [stage(B, "Waiting", [1])] },
      after: { ...zones("Now"), stages: [stage(B, "Waiting", [1])] },
    },
    /keeps the results of ingester-zone-b as ingester-zone-a begins/,
  ],
  ["two zones under way", { after: zones("Now", "Now") }, /-a begins while ingester-zone-b is under way/],
  ["a zone after one that is done", { before: zones("Now"), after: zones("Now", "Now"), a: { updated: 3 } }, undefined],
  [
    "results that outlast an edit",
    {
      before: { stages: [stage(A, "Waiting", [1])] },
      after: { observedGeneration: 2, stages: [stage(A, "Waiting", [1])] },
    },
    /keeps results of errors from before it was edited/,
  ],
  [
    "a first result after an edit",
    {
      before: { stages: [stage(A, "Waiting", [2])] },
      after: { observedGeneration: 2, stages: [stage(A, "Waiting", [1, 59])] },
      told: "Success",
    },
    undefined,
  ],
  [
    "a success that nobody has answered",
    { after: { stages: [stage(A, "Waiting", [1, 59])] }, told: "Error" },
    /a success of gate that nobody/,
  ],
  ["a success that was answered", { after: { stages: [stage(A, "Waiting", [1, 59])] }, told: "Success" }, undefined],
  [
    "two successes by one answer",
    { after: { stages: [stage(A, "Waiting", [2, 59])] }, told: "Success" },
    /an answer for errors twice/,
  ],
  ["a later zone without its checks", { ...NEXT, a: { updated: 1 } }, /-b begin without its checks after another/],
  ["a later zone after one of which no pod was replaced", NEXT, undefined],
  ["a pass", PASSES, undefined],
  [
    "a pass after too few successes",
    { ...PASSES, before: zones(), after: { ...zones(), stages: [stage(A, "Passed", [1, 59])] } },
    /passes ingester-zone-a without its successes/,
  ],
  ["a pass after the soak time", { ...PASSES, gate: { soakSeconds: 600 } }, undefined],
  ["a pass before it", { ...PASSES, gate: { soakSeconds: 660 } }, /passes ingester-zone-a before its soak time/],
  ["a pass of a gate that only soaks", { ...PASSES, gate: { asksNothing: true, soakSeconds: 600 } }, undefined],
  ["a pass of a gate that asks nothing", { ...PASSES, gate: { asksNothing: true, soakSeconds: 0 } }, /asks nothing/],
  ["a rollout that is over", { after: SETTLED, a: { updated: 3 }, b: { updated: 3 } }, undefined],
  ["one that is over too early", { after: SETTLED, a: { updated: 3 } }, /is settled, and ingester-zone-b is not/],
  [
    "one that is over with another revision",
    { after: { ...zones(), ...OVER }, a: { updated: 3 }, b: { updated: 3 } },
    /settles ingester-zone-a with a revision that it does not have/,
  ],
  [
    "a pass while another zone is not ready",
    { ...PASSES, b: { ready: 2 } },
    /begin while ingester-zone-b is not ready/,
  ],
  ["a pass while another zone has just been ready", { ...PASSES, b: { ready: 2 }, isLately: true }, undefined],
  ["a zone under way that is held", { before: zones("Now"), after: zones(), a: { updated: 1 } }, /holds .*-a again/],
  ["a zone that has not begun and is held", { before: zones("Now"), after: zones() }, undefined],
  [
    "a zone under way that is asked for",
    {
      before: { ...zones("Now"), stages: PASSED },
      after: { ...zones("Now"), stages: [stage(A, "Passed", [3, 59])] },
      a: { updated: 1 },
      told: "Success",
    },
    /asks for ingester-zone-a again/,
  ],
  [
    "a zone under way whose check was asked before",
    {
      before: { ...zones("Now"), stages: PASSED },
      after: { ...zones("Now"), stages: [stage(A, "Passed", [3, 59])] },
      a: { updated: 1 },
      toldEarlier: 1,
    },
    undefined,
  ],
  [
    "a zone under way whose results an edit drops",
    {
      before: { ...zones("Now"), stages: PASSED },
      after: { ...zones("Now"), observedGeneration: 2, stages: [stage(A, "Passed")] },
      a: { updated: 1 },
    },
    undefined,
  ],
  [
    "one that is over while a zone lacks pods",
    { after: SETTLED, a: { updated: 3, ready: 2 }, b: { updated: 3 } },
    /is settled, and ingester-zone-a lacks pods/,
  ],
  [
    "a bypass that was refused",
    { before: bypasses(SOON, false), after: { ...bypasses(SOON, false), ...BYPASSED }, a: { bypass: SOON } },
    /by a bypass, and .*-a has none/,
  ],
  [
    "a bypass that a clock accepted which was ahead",
    { before: bypasses(LATE, true), after: { ...bypasses(LATE, true), ...BYPASSED }, a: { bypass: LATE } },
    /by a bypass, and .*-a has none/,
  ],
  ["its verdict, which stays", { before: bypasses(LATE, true), after: bypasses(LATE, true) }, undefined],
  ["a result that is older than its stage", { before: OLDER, after: { ...OLDER, retried: "" } }, /which is older/],
  ["one that is dropped", { before: OLDER, after: { stages: [stage(A, "Waiting")] } }, undefined],
  [
    "a stage that is older than its rollout",
    { before: { ...STARTED, ...ONCE }, after: { ...STARTED, ...ONCE, retried: "" } },
    /which is older/,
  ],
  [
    "one that has begun again",
    { before: { ...STARTED, ...ONCE }, after: { ...STARTED, stages: [stage(A, "Waiting", [1, 59])] }, told: "Success" },
    undefined,
  ],
  [
    "a new stage that is older than its rollout",
    { before: STARTED, after: { ...STARTED, stages: [stage(A, "Waiting")] } },
    /since before its rollout/,
  ],
  ["one that was there before", { before: { ...STARTED, ...ONCE }, after: { ...STARTED, ...ASKED } }, undefined],
  ["a result that is to come", { before: COMING, after: { ...COMING, retried: "" } }, /from a time that is to come/],
  ["one that is dropped as well", { before: COMING, after: { stages: [stage(A, "Waiting")] } }, undefined],
  [
    "a zone that begins in a rollout that is over",
    { before: { ...OVER, ...zones() }, after: { ...OVER, ...zones("Now") } },
    /begins in a rollout that is over/,
  ],
  ["a zone on its way back that is asked for", { before: BACK, after: { ...BACK, ...ASKED } }, /gets back what it had/],
  ["one after the rollout", { before: BACK, after: { ...BACK, ...OVER, ...ASKED }, ...ALL_UPDATED }, undefined],
  ["a way back that is none", { before: { identity: undefined }, after: BACK }, /for one on its way back/],
  ["a way back", { before: { identity: undefined }, after: BACK, a: { updated: 1 }, b: { updated: 1 } }, undefined],
  ["what somebody else writes", { after: bypasses(LATE, true), by: "human" }, undefined],
];

describe("the oracle of gates' statuses", () => {
  for (const [what, given, expected] of CASES)
    it(`${expected ? "condemns" : "accepts"} ${what}`, () => {
      assert.match(judge(given), expected ?? /^$/);
    });

  const TAKEN: readonly (readonly [what: string, Stage, expected: RegExp | undefined])[] = [
    ["that has begun by its gate", { before: zones("Now") }, undefined],
    ["that its gate does not name", { before: zones() }, /has not recorded that ingester-zone-a begins/],
    ["that its gate has named after the list", { before: zones(), after: zones("Now"), recorded: 1 }, /not recorded/],
    ["by a pass", { before: { ...zones("Now"), stages: PASSED } }, undefined],
    ["by a pass that is old", { before: { ...zones("Now"), stages: [OLD_PASS] } }, /by a pass of .* that is old/],
    ["by one that it has used", { before: { ...zones("Now"), stages: [OLD_PASS] }, a: { updated: 1 } }, undefined],
    ["that a gate only observes", { before: zones(), gate: { mode: "Observe" } }, undefined],
  ];
  for (const [what, given, expected] of TAKEN)
    it(`${expected ? "condemns" : "accepts"} a pod of a zone ${what}`, () => {
      assert.match(judge({ ...given, isTaken: true }), expected ?? /^$/);
    });
});
