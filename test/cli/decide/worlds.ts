/** Worlds of plans, and those of reasons that explain tells of. */
import type { RolloutGroupStatus } from "../../../reconciler/group-status/status.ts";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { parseBudget, selectorOf } from "../../../reconciler/budget/zpdb.ts";
import { hold, type Reason } from "../../../reconciler/model/decision.ts";
import { describeHolds } from "../../../reconciler/group-status/decide-status.ts";
import type { World, WorldBudget } from "../../../reconciler/plan/world.ts";
import { budgetObject } from "../../builders/budgets.ts";
import { group, worldOf } from "../../builders/groups.ts";
import { LAST, NOON, PREVIOUS, TOO_LONG, type ZoneTraits } from "../../builders/zones.ts";
import { DELAYED, MIRROR } from "../../reconciler/scaling/mirror-stage.ts";

export const OUTDATED: ZoneTraits = { at: PREVIOUS, updateRevision: LAST };

export const zonesOf = (...traits: readonly ZoneTraits[]) => group(...traits).zones;

/** Pods of the zones have the label that the budget selects. */
export function withBudget(traits: readonly ZoneTraits[], spec: object, more: readonly WorldBudget[] = []): World {
  const world = worldOf(zonesOf(...traits));
  const labelled = world.zones.map((zone) => ({
    ...zone,
    pods: zone.pods.map((pod) => ({ ...pod, labels: { ...pod.labels, "rollout-group": "ingester" } })),
  }));
  return { ...world, zones: labelled, budgets: [budgetOf(spec), ...more] };
}

export function budgetOf(spec: object, name = "ingester"): WorldBudget {
  const object = budgetObject(spec, name);
  const ref = { kind: "ZoneAwarePodDisruptionBudget", namespace: "test", name, uid: `uid-${name}` } as const;
  return { ref, content: parseBudget(object), matchLabels: selectorOf(object), reservations: {}, others: [] };
}

/** What the reconciler records of a hold that only a write finds out. */
export function recorded(reason: Reason): Partial<RolloutGroupStatus> {
  const [zone] = zonesOf({});
  const facts = {
    group: "ingester",
    zones: [],
    state: "settled",
    message: "",
    hold: undefined,
    step: undefined,
    remaining: [],
    replaced: 0,
  } as const;
  const scalingHolds = [hold(reason, `${zone?.name} was not scaled: ${reason}`, zone ? [zone] : [])];
  const common = { earlier: {}, generation: 1, deadlineMs: 1, now: NOON, tookMs: 0, passes: 1 };
  return { holds: describeHolds({ ...common, facts: { ...facts, scalingHolds, failing: false } }, undefined) };
}

/** Reasons that test/cli/troubles does not make: it plays most of them, from what is said to the executed cure. */
export const WORLDS: Readonly<Partial<Record<Reason, () => World>>> = {
  GroupNameEmpty: () => worldOf(zonesOf({ group: "" }, { group: "" })),
  TooManyZones: () =>
    worldOf(zonesOf(...Array.from({ length: MAX_ZONES + 1 }, (_, i) => ({ name: `ingester-zone-${i}` })))),
  LabelsTooLong: () => worldOf(zonesOf({}, { labels: TOO_LONG })),
  RevisionUnknown: () => worldOf(zonesOf({ ...OUTDATED, updateRevision: "" }, {})),
  StatusNotObserved: () => worldOf(zonesOf({ generation: 2, observedGeneration: 1 }, {})),
  ZoneTerminating: () => worldOf(zonesOf({ terminating: true }, {})),
  MultipleZonesNotReady: () => worldOf(zonesOf({ pods: { 0: { ready: false } } }, { pods: { 1: { ready: false } } })),
  OtherZoneNotReady: () =>
    worldOf(
      zonesOf(OUTDATED, { annotations: { "grafana.com/rollout-paused": "true" }, pods: { 1: { ready: false } } }),
    ),
  BudgetUnusable: () => withBudget([OUTDATED, {}, {}], { maxUnavailable: -1 }),
  DelayInvalid: () => {
    const zones = zonesOf(
      { annotations: { ...MIRROR, ...DELAYED, "grafana.com/rollout-delayed-downscale": "soon" } },
      {},
    );
    const resource = { group: "g", version: "v1", plural: "templates" };
    const reading = { resource, wantedReplicas: 2, reportedReplicas: 3 };
    return worldOf(zones, { references: new Map(zones.map(({ uid }) => [uid, reading])) });
  },
};
