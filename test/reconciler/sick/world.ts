/**
 * Groups whose pods are sick in every way that Kubernetes knows, with the controllers, kubelets and users around them.
 */
import type { BudgetPod, BudgetZone } from "../../../reconciler/budget/budget-pod.ts";
import type { HealthState } from "../../../reconciler/model/health.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { statefulSetObject } from "../builders.ts";
import { MIRROR } from "../scaling/mirror-stage.ts";

/** Why a pod serves nothing, or only in part. Of `limping` pods one container works. */
export const SICKNESSES = ["crashing", "unpullable", "unschedulable", "neverReady", "limping"] as const;
export type Sickness = (typeof SICKNESSES)[number];
const BROKEN: Partial<Record<Sickness, string>> = {
  crashing: "CrashLoopBackOff",
  unpullable: "ImagePullBackOff",
  unschedulable: "Unschedulable",
  limping: "CrashLoopBackOff",
};

export interface SickPod {
  readonly uid: number;
  readonly revision: number;
  sickness: Sickness | undefined;
  state: "starting" | "ready" | "failing" | "terminating";
  hasBeenReady: boolean;
  /** When it was last ready, or made. */
  since: number;
  /** Its node is dead: while it terminates, it stays until then. */
  stuckUntil: number;
}

export interface SickZone {
  readonly name: string;
  replicas: number;
  template: number;
  current: number;
  readonly annotations: Record<string, string>;
  readonly pods: Map<number, SickPod>;
}

export interface SickWorld {
  readonly zones: SickZone[];
  /** What pods of a template suffer from. */
  readonly templates: Map<number, Sickness | undefined>;
  /** What mirroring zones are to have. */
  reference: number;
  now: number;
  uids: number;
}

export const MINUTE = 60_000;
export const START = Date.parse("2026-01-01T12:00:00Z");

export interface Shape {
  readonly sizes: readonly number[];
  readonly maxUnavailable: number;
  readonly scaling: "none" | "followers" | "mirrors";
}

export function createSickWorld(
  { sizes, maxUnavailable, scaling }: Shape,
  firstSickness: Sickness | undefined,
): SickWorld {
  const same = sizes[0] ?? 1;
  const zones = sizes.map((size, i): SickZone => {
    const name = `ingester-zone-${"abcd".charAt(i)}`;
    const follow =
      scaling === "followers" && i > 0 ? { "grafana.com/rollout-downscale-leader": "ingester-zone-a" } : {};
    const annotations = {
      "rollout-max-unavailable": String(maxUnavailable),
      ...follow,
      ...(scaling === "mirrors" && MIRROR),
    };
    return { name, replicas: scaling === "none" ? size : same, template: 0, current: 0, annotations, pods: new Map() };
  });
  const world: SickWorld = { zones, templates: new Map([[0, firstSickness]]), reference: same, now: START, uids: 0 };
  control(world);
  settleKubelets(world);
  return world;
}

/** The StatefulSet controllers: surplus pods go, missing ones are made. True if anything changed. */
export function control(world: SickWorld): boolean {
  let changed = false;
  for (const zone of world.zones) {
    for (const [ordinal, pod] of zone.pods)
      if (ordinal >= zone.replicas && pod.state !== "terminating") changed = terminate(pod, world.now);
    for (let ordinal = 0; ordinal < zone.replicas; ordinal++) {
      if (zone.pods.has(ordinal)) continue;
      zone.pods.set(ordinal, createPod(world, zone));
      changed = true;
    }
  }
  return changed;
}

function createPod(world: SickWorld, { template }: SickZone): SickPod {
  const sickness = world.templates.get(template);
  return {
    uid: ++world.uids,
    revision: template,
    sickness,
    state: "starting",
    hasBeenReady: false,
    since: world.now,
    stuckUntil: 0,
  };
}

export function terminate(pod: SickPod, now: number): true {
  Object.assign(pod, { state: "terminating", since: now });
  return true;
}

/** The kubelet of one pod: it ends, starts, or becomes ready, if it can. True if anything changed. */
export function moveKubelet(world: SickWorld, zone: SickZone, ordinal: number): boolean {
  const pod = zone.pods.get(ordinal);
  if (pod?.state === "terminating" && pod.stuckUntil <= world.now) return zone.pods.delete(ordinal);
  if (pod?.state !== "starting" || pod.sickness !== undefined) return false;
  Object.assign(pod, { state: "ready", hasBeenReady: true, since: world.now });
  return true;
}

export function settleKubelets(world: SickWorld): boolean {
  const moves = world.zones.flatMap((zone) =>
    [...zone.pods.keys()].map((ordinal) => moveKubelet(world, zone, ordinal)),
  );
  return moves.includes(true);
}

/** The group as a tick and its budget see it. */
export function observeSick(world: SickWorld): BudgetZone[] {
  return world.zones.map((zone) => {
    const pods = [...zone.pods].toSorted(([a], [b]) => a - b).map(([ordinal, pod]) => observePod(zone, ordinal, pod));
    const count = (matches: (pod: BudgetPod) => boolean): number => pods.filter(matches).length;
    const at = (revision: number): number => count((pod) => pod.revision === `r${revision}` && !pod.terminating);
    const read = readZone(
      statefulSetObject({
        name: zone.name,
        replicas: zone.replicas,
        annotations: zone.annotations,
        updateRevision: `r${zone.template}`,
      }),
    );
    const status = {
      ...read.status,
      replicas: pods.length,
      ready: count(({ ready }) => ready),
      updated: at(zone.template),
      current: zone.current === zone.template ? 0 : at(zone.current),
      currentRevision: `r${zone.current}`,
    };
    return { ...read, status, pods };
  });
}

function stateOf({ state, sickness, hasBeenReady }: SickPod): HealthState {
  if (state === "ready") return "ready";
  if (state === "terminating") return "gone";
  if (sickness === "limping") return "working";
  if (sickness && BROKEN[sickness] !== undefined) return "lost";
  return hasBeenReady ? "recovering" : "starting";
}

function observePod(zone: SickZone, ordinal: number, pod: SickPod): BudgetPod {
  const ready = pod.state === "ready";
  const terminating = pod.state === "terminating";
  const ailing = pod.state === "starting" || pod.state === "failing" ? pod.sickness : undefined;
  return {
    kind: "Pod",
    namespace: "test",
    name: `${zone.name}-${ordinal}`,
    uid: `u${pod.uid}`,
    resourceVersion: "1",
    revision: `r${pod.revision}`,
    owner: `uid-${zone.name}`,
    madeBy: zone.name,
    createdAt: undefined,
    terminating,
    ready,
    health: {
      state: stateOf(pod),
      since: pod.since,
      served: pod.hasBeenReady,
      fault: ailing && BROKEN[ailing],
      missingImage: undefined,
    },
    readyAfterMs: undefined,
    restarts: 0,
    labels: { "rollout-group": "ingester" },
    phase: "Running",
    controller: { kind: "StatefulSet", name: zone.name },
    readySince: ready ? pod.since : undefined,
  };
}
