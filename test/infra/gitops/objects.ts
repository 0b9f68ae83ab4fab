/** Objects with the statuses that the reconciler writes, and what every engine has to say of them. */
import { describeProtection } from "../../../reconciler/budget/protection.ts";
import { BUDGET_KIND, parseBudget } from "../../../reconciler/budget/zpdb.ts";
import { NO_STREAK } from "../../../reconciler/checks/check.ts";
import { describeOpen, describeValid, validByAnswers } from "../../../reconciler/gates/report.ts";
import type { Stage } from "../../../reconciler/gates/record.ts";
import { decideStatus } from "../../../reconciler/group-status/decide-status.ts";
import type { GroupFacts } from "../../../reconciler/group-status/facts.ts";
import { stampCondition } from "../../../infra/kubernetes/condition.ts";
import { hold } from "../../../reconciler/model/decision.ts";
import { planPass } from "../../../reconciler/nodes/plan-pass.ts";
import { budgetObject } from "../../builders/budgets.ts";
import { gateObject, gateOf } from "../../builders/gates.ts";
import { group } from "../../builders/groups.ts";
import {
  NEW,
  OLD as OLD_DB,
  rolling as phasedStep,
  rolloutObject,
  setObject,
  type SetTraits,
} from "../../builders/phased.ts";
import { OLD, PREVIOUS, statefulSetObject, type ZoneTraits } from "../../builders/zones.ts";
import { facts } from "../../reconciler/group-status/facts.ts";
import { factsOf, type Scene } from "../../reconciler/phased/scene.ts";
import { busyNode, entry, node, policy, shadow, snapshot as nodeSnapshot } from "../../reconciler/nodes/fixture.ts";
import { decide as decidePhased } from "../../reconciler/phased/adapter.ts";
import { checking, held as heldPhase } from "../../reconciler/phased/table.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

type Json = Readonly<Record<string, unknown>>;
export interface Target extends Json {
  readonly kind: string;
  readonly apiVersion: string;
}

/** A RolloutGroup with the status that the reconciler would write. */
function rolloutGroup(traits: ZoneTraits, more: Partial<GroupFacts> = {}, generation = 1): Target {
  const status = decideStatus({
    facts: facts({ traits: [traits], ...more }),
    earlier: {},
    generation: 1,
    deadlineMs: 1000,
    now: START,
    tookMs: 0,
    passes: 1,
  });
  return { apiVersion: "zonewise.dev/v1", kind: "RolloutGroup", metadata: { generation }, spec: {}, status };
}

const held = (reason: "ZonePaused" | "BudgetUnusable" | "ZoneNotReady"): Partial<GroupFacts> => ({
  hold: hold(reason, "said", []),
});

interface GateCase {
  readonly mode?: "Enforce" | "Observe";
  readonly state?: Stage["state"];
  readonly verdict?: "Failure" | "Error";
  readonly hasZones?: boolean;
  /** What Prometheus says of its expression. */
  readonly said?: "BadQuery" | "Unreachable";
  readonly generation?: number;
}

const VECTOR = { kind: "Vector", samples: 0, warnings: [] } as const;

function gate({ mode = "Enforce", state, verdict, hasZones = true, said, generation = 1 }: GateCase): Target {
  const own = gateOf({ spec: { mode } });
  const checks = verdict ? [{ name: "errors", lastVerdict: verdict, streak: { ...NO_STREAK, failures: 1 } }] : [];
  const stage = state && ({ point: "BetweenZones", zone: "b", since: START, state, checks } as const);
  const record = stage && { identity: "x", startedAt: START, zones: [], bypasses: [], stages: [stage] };
  const stamp = { earlier: undefined, generation: 1, now: START };
  const answer = said ? ({ kind: "Error", code: said, message: "" } as const) : VECTOR;
  const valid = describeValid(own, hasZones) ?? validByAnswers([{ name: "errors", which: "", answer }]);
  const conditions = [valid, describeOpen(own, record)].map((one) => stampCondition(one, stamp));
  const { metadata, ...rest } = gateObject({ spec: { mode }, generation });
  return {
    apiVersion: "zonewise.dev/v1",
    kind: "RolloutGate",
    metadata,
    ...rest,
    status: { observedGeneration: 1, conditions },
  };
}

function phased(scene: Scene): Target {
  const decision = decidePhased(factsOf(scene));
  const status = decision.action === "report" ? decision.status : {};
  return { ...rolloutObject(), status } as Target;
}

function budget(traits: readonly ZoneTraits[], more: object = {}, spec: object = {}): Target {
  const object = budgetObject(spec);
  const status = describeProtection({
    content: parseBudget({ kind: BUDGET_KIND, ...object }),
    generation: 1,
    zones: group(...traits).zones,
    guard: { reason: "Guarded", message: "hook guards", remedy: "" },
    earlier: {},
    now: START,
    ...more,
  });
  return { ...(object as Target), status };
}
const unguarded = (reason: "NoWebhook" | "NotSeen") => ({
  guard: { reason, message: "said", remedy: "" },
});

function nodes(input: Parameters<typeof nodeSnapshot>[0], status: object = {}): Target {
  const plan = planPass(nodeSnapshot(input, { policy: policy({}, status) }));
  return {
    apiVersion: "zonewise.dev/v1",
    kind: "NodeUpdatePolicy",
    metadata: { generation: 1 },
    spec: {},
    status: plan.status,
  };
}
const current = node("done", { shadow: shadow("done", {}, { current_version: "1.1.0", target_version: "1.1.0" }) });
const broken = busyNode("a", "RebootedIntoUpdate", "ErrorReset", { node: { bootId: "boot-2" } });

const zone = (traits: ZoneTraits): Target => statefulSetObject(traits) as Target;
const phasedSet = (traits: SetTraits): Target => setObject(traits) as Target;
const outsider = (traits: ZoneTraits, spec: object = {}): Target => {
  const { metadata, ...set } = statefulSetObject(traits);
  return { ...set, metadata: { ...metadata, labels: {} }, spec: { ...set.spec, ...spec } } as Target;
};
const rolling = (partition = 0): object => ({
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition } },
});
const empty = (kind: string, apiVersion = "zonewise.dev/v1"): Target => ({
  apiVersion,
  kind,
  metadata: { generation: 1 },
  spec: {},
  status: {},
});

export type Health = "Healthy" | "Progressing" | "Degraded" | "Suspended";
export type Case = readonly [name: string, object: Target, health: Health];

export const CASES: readonly Case[] = [
  ["a group that is ready", rolloutGroup({}), "Healthy"],
  ["a group that was ready before its spec changed", rolloutGroup({}, {}, 2), "Progressing"],
  [
    "a group that rolls out",
    rolloutGroup(OLD, { state: "acted", step: { action: "deletePods", zone: "a" } }),
    "Progressing",
  ],
  ["a group that waits", rolloutGroup(OLD, held("ZoneNotReady")), "Progressing"],
  ["a group that is paused", rolloutGroup(OLD, held("ZonePaused")), "Suspended"],
  ["a group that has stalled", rolloutGroup(OLD, held("BudgetUnusable")), "Degraded"],
  ["a group without a status", empty("RolloutGroup"), "Progressing"],

  ["a gate that was not asked yet", gate({}), "Healthy"],
  ["a gate that has passed", gate({ state: "Passed" }), "Healthy"],
  ["a gate that waits", gate({ state: "Waiting", verdict: "Failure" }), "Progressing"],
  ["a gate without an answer", gate({ state: "Waiting", verdict: "Error" }), "Progressing"],
  ["a gate that has failed", gate({ state: "Failed", verdict: "Failure" }), "Degraded"],
  ["a gate that has failed and only observes", gate({ state: "Failed", mode: "Observe" }), "Healthy"],
  ["a gate before its zones exist", gate({ hasZones: false }), "Progressing"],
  ["a gate that is no PromQL", gate({ said: "BadQuery" }), "Degraded"],
  ["a gate whose Prometheus was not reached yet", gate({ said: "Unreachable" }), "Healthy"],
  ["a gate that was changed", gate({ state: "Passed", generation: 2 }), "Progressing"],
  ["a gate without a status", empty("RolloutGate"), "Progressing"],

  ["a PhasedRollout that is done", phased({}), "Healthy"],
  ["a PhasedRollout that rolls", phased(heldPhase("ooo", phasedStep(3))), "Progressing"],
  [
    "a PhasedRollout whose checks fail",
    phased(heldPhase("ooo", checking(3, { consecutiveFailedChecks: 2 }), { check: { failureThreshold: 2 } })),
    "Degraded",
  ],
  [
    "a PhasedRollout that is late",
    phased(heldPhase("ooo", phasedStep(3), { spec: { progressDeadlineSeconds: 100 } })),
    "Degraded",
  ],
  ["a PhasedRollout that is suspended", phased({ spec: { skipCheck: true }, set: { partition: 0 } }), "Suspended"],
  ["a PhasedRollout without its StatefulSet", phased({ set: null }), "Progressing"],
  ["a PhasedRollout that cannot manage", phased({ set: { strategy: "OnDelete" } }), "Degraded"],
  ["a PhasedRollout without a status", empty("PhasedRollout", "sts.plus/v1alpha1"), "Progressing"],

  ["a budget that protects", budget([{}, {}]), "Healthy"],
  ["a budget that is invalid", budget([{}, {}], {}, { maxUnavailable: -1 }), "Degraded"],
  ["a budget before its zones exist", budget([]), "Progressing"],
  ["a budget of one zone", budget([{}]), "Degraded"],
  ["a budget that no webhook asks", budget([{}, {}], unguarded("NoWebhook")), "Degraded"],
  ["a budget that was not seen to be asked", budget([{}, {}], unguarded("NotSeen")), "Progressing"],
  [
    "a budget without a status",
    empty("ZoneAwarePodDisruptionBudget", "rollout-operator.grafana.com/v1"),
    "Progressing",
  ],

  ["a policy whose nodes are up to date", nodes([current]), "Healthy"],
  ["a policy with a node that waits", nodes([current, node("b")]), "Progressing"],
  [
    "a policy with a node under way",
    nodes([current, busyNode("a", "StagedAndPerformedUpdate", "Idle")], { active: [entry("a")] }),
    "Progressing",
  ],
  ["a policy that is frozen", nodes([current, broken], { active: [entry("a")] }), "Degraded"],
  ["a policy without a status", empty("NodeUpdatePolicy"), "Progressing"],

  ["a zone that is done", zone({}), "Healthy"],
  ["a zone without replicas", zone({ replicas: 0, currentRevision: PREVIOUS }), "Healthy"],
  ["a zone whose spec is not observed", zone({ generation: 2, observedGeneration: 1 }), "Progressing"],
  ["a zone whose rollout has not begun", zone(OLD), "Progressing"],
  ["a zone whose pods are updated, but that is not recorded", zone({ currentRevision: PREVIOUS }), "Progressing"],
  ["a zone that lacks a pod", zone({ statusReady: 2 }), "Progressing"],
  [
    "a zone that is paused with outdated pods",
    zone({ ...OLD, annotations: { "grafana.com/rollout-paused": "true" } }),
    "Suspended",
  ],
  ["a StatefulSet of a PhasedRollout that is done", phasedSet({}), "Healthy"],
  ["a StatefulSet of a PhasedRollout that begins", phasedSet({ update: NEW }), "Progressing"],
  ["a StatefulSet of a PhasedRollout half-way", phasedSet({ update: NEW, updated: 2, partition: 1 }), "Progressing"],
  [
    "a StatefulSet of a PhasedRollout that is not recorded",
    phasedSet({ current: OLD_DB, update: NEW, updated: 3, partition: 0 }),
    "Progressing",
  ],
];

/** StatefulSets that Zonewise has nothing to do with: only the rules of Argo CD are asked about them. */
export const OUTSIDERS: readonly Case[] = [
  ["a StatefulSet in no group, OnDelete and outdated", outsider(OLD), "Healthy"],
  ["a StatefulSet in no group that rolls", outsider(OLD, rolling()), "Progressing"],
  ["a StatefulSet in no group that has rolled", outsider({}, rolling()), "Healthy"],
  ["a StatefulSet in no group behind its partition", outsider(OLD, rolling(1)), "Progressing"],
  ["a StatefulSet in no group at its partition", outsider(OLD, rolling(3)), "Healthy"],
];
