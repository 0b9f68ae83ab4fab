/** A world for each reason of the closed list, in which it is the reason. */
import type { RolloutGroupStatus } from "../../../reconciler/group-status/status.ts";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { parseBudget, selectorOf } from "../../../reconciler/budget/zpdb.ts";
import { hold, type Reason } from "../../../reconciler/model/decision.ts";
import { describeHolds } from "../../../reconciler/group-status/decide-status.ts";
import type { World, WorldBudget } from "../../../reconciler/plan/world.ts";
import { budgetObject } from "../../reconciler/budget/builders.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { orphanedZone } from "../../../reconciler/model/orphans.ts";
import {
  group,
  LAST,
  leftBehind,
  PREVIOUS,
  statefulSetObject,
  TOO_LONG,
  type ZoneTraits,
} from "../../reconciler/builders.ts";
import { follow, readOne } from "../../reconciler/gates/adapter.ts";
import { data, gateObject, type Kind, lost, T0 } from "../../reconciler/gates/builders.ts";
import { DELAYED, MIRROR } from "../../reconciler/scaling/mirror-stage.ts";
import { NOW, worldOf } from "../../reconciler/plan/builders.ts";

export const OUTDATED: ZoneTraits = { at: PREVIOUS, updateRevision: LAST };
const FOLLOWER = { "grafana.com/rollout-downscale-leader": "ingester-zone-a" };
const leader = (name: string) => ({ annotations: { "grafana.com/rollout-downscale-leader": `ingester-zone-${name}` } });
const HOUR = 3_600_000;
const ago = (hours: number) => new Date(NOW - hours * HOUR).toISOString();
const minTime = (text: string) => ({ "grafana.com/min-time-between-zones-downscale": text });

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

/** A zone that mirrors a resource which wants `replicas`, or cannot be read. */
function mirroring(annotations: Record<string, string>, reference: number | string, more: Partial<World> = {}): World {
  const zones = zonesOf({ annotations: { ...MIRROR, ...annotations } }, {});
  const resource = { group: "g", version: "v1", plural: "templates" };
  const reading =
    typeof reference === "string"
      ? { unreadable: reference }
      : { resource, wantedReplicas: reference, reportedReplicas: 3 };
  return worldOf(zones, { references: new Map(zones.map(({ uid }) => [uid, reading])), ...more });
}

/** Zone a waits for a gate, which has had this answer. */
function gated(answer?: Kind, check: object = {}): World {
  const traits = [OUTDATED, { updateRevision: LAST }, {}];
  const gate = gateObject({ spec: { when: ["BeforeFirstZone"] }, check });
  const zones = traits.map((one, i) => statefulSetObject({ name: `ingester-zone-${"abc".charAt(i)}`, ...one }));
  const facts = { now: T0, gates: [gate], zones, wants: "ingester-zone-a" } as const;
  return worldOf(zonesOf(...traits), { gates: [readOne(answer ? follow(facts, answer).gate : gate)], now: T0 });
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
  const common = { earlier: {}, generation: 1, deadlineMs: 1, now: NOW, tookMs: 0, passes: 1 };
  return { holds: describeHolds({ ...common, facts: { ...facts, scalingHolds, failing: false } }, undefined) };
}

/**
 * A reason without a world is explained as the reconciler has recorded it. ScaleRefused, PrepareFailed and TurnAwaited
 * only a write, or other groups, find out.
 */
export const WORLDS: Readonly<Partial<Record<Reason, () => World>>> = {
  UpdateStrategyNotOnDelete: () => worldOf(zonesOf({ updateStrategy: "RollingUpdate" }, {})),
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
  ZoneOrphaned: () => {
    const world = worldOf(zonesOf(OUTDATED));
    const pods = leftBehind({ name: "ingester-zone-b", pods: { 0: { ready: false } } }).map(readPod);
    return { ...world, orphans: [orphanedZone("ingester-zone-b", pods, { owner: undefined, zones: world.zones })] };
  },
  MaxUnavailableReached: () =>
    worldOf(
      zonesOf({ ...OUTDATED, pods: { 0: { revision: LAST, ready: false }, 1: { revision: LAST, ready: false } } }, {}),
    ),
  ZoneNotReady: () => worldOf(zonesOf({ currentRevision: PREVIOUS, pods: { 0: { ready: false } } }, {})),
  ZonePaused: () => worldOf(zonesOf({ ...OUTDATED, annotations: { "grafana.com/rollout-paused": "true" } }, {})),
  WindowClosed: () =>
    worldOf(
      zonesOf(
        {
          ...OUTDATED,
          annotations: { "zonewise.dev/rollout-window": "0 0 2 1 1 *", "zonewise.dev/rollout-window-duration": "1h" },
        },
        {},
      ),
    ),
  WindowInvalid: () =>
    worldOf(zonesOf({ ...OUTDATED, annotations: { "zonewise.dev/rollout-window": "at night" } }, {})),
  BudgetSpent: () =>
    withBudget([OUTDATED, { pods: {} }, {}], {
      maxUnavailable: 1,
      podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)",
      crossZoneEvictionDelay: "24h",
    }),
  BudgetUnusable: () => withBudget([OUTDATED, {}, {}], { maxUnavailable: -1 }),
  GateWaiting: () => gated(),
  GateFailed: () => gated(data, { failureThreshold: 1 }),
  GateInvalid: () => gated((at) => ({ kind: "Error", code: "BadQuery", message: "parse error", at })),
  GateUnreachable: () => gated(lost),
  LeaderNotFound: () => worldOf(zonesOf({}, leader("x"))),
  LeaderCycle: () => worldOf(zonesOf(leader("b"), leader("a"))),
  LeaderAndMirror: () => worldOf(zonesOf({}, { annotations: { ...FOLLOWER, ...MIRROR } })),
  LeaderNotReady: () =>
    worldOf(
      zonesOf(
        { replicas: 5, statusReady: 3 },
        { annotations: { ...FOLLOWER, "grafana.com/rollout-upscale-only-when-leader-ready": "true" } },
      ),
    ),
  MinTimeBetweenZones: () =>
    worldOf(
      zonesOf(
        { replicas: 2, annotations: { "grafana.com/last-downscale": ago(1) } },
        { annotations: FOLLOWER, labels: minTime("12h") },
      ),
    ),
  MinTimeUnknown: () =>
    worldOf(
      zonesOf(
        { replicas: 2, annotations: { "grafana.com/last-downscale": ago(1) } },
        { annotations: FOLLOWER, labels: minTime("long") },
      ),
    ),
  ReferenceUnreadable: () => mirroring({}, "no such resource"),
  DelayInvalid: () => mirroring({ ...DELAYED, "grafana.com/rollout-delayed-downscale": "soon" }, 2),
  DelayNotReached: () => mirroring(DELAYED, 2, { preparedAt: new Map([["uid-ingester-zone-a", NOW - HOUR / 2]]) }),
};
