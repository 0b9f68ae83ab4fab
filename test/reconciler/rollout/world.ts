/** A model of a group of zones with a StatefulSet controller and kubelets, for the properties of the rollout. */
import type { GroupSnapshot } from "../../../reconciler/model/zone.ts";
import type { RolloutDecision } from "../../../reconciler/rollout/decide-zone.ts";
import { zone, type PodTraits } from "../builders.ts";

/** A limping pod has one container that cannot start and one that works. */
type Phase = "ready" | "recovering" | "crashing" | "limping" | "terminating" | "missing";

export interface SimulatedPod {
  revision: number;
  phase: Phase;
  /** It was ready since it was made. */
  hasServed?: boolean;
}

export interface SimulatedZone {
  readonly name: string;
  readonly maxUnavailable: number;
  paused: boolean;
  template: number;
  readonly pods: SimulatedPod[];
  /** The last status of the StatefulSet controller: it lags. */
  status: { ready: number; replicas: number; updated: number; current: number; update: number; template: number };
}

/** All changes of a group by others. */
export const HAPPENINGS = [
  "recover",
  "stumble",
  "crash",
  "limp",
  "vanish",
  "recreate",
  "sync",
  "syncAll",
  "deploy",
  "revert",
  "pause",
  "resume",
] as const;
export type Happening = (typeof HAPPENINGS)[number];

export function createWorld(sizes: readonly number[], maxUnavailable: number): SimulatedZone[] {
  return sizes.map((size, i) => {
    const pods = Array.from({ length: size }, (): SimulatedPod => ({ revision: 0, phase: "ready", hasServed: true }));
    const status = { ready: size, replicas: size, updated: size, current: 0, update: 0, template: 0 };
    return { name: `ingester-zone-${"abcd".charAt(i)}`, maxUnavailable, paused: false, template: 0, pods, status };
  });
}

/** Applies one change to a zone, or to its pod picked by `at`; does nothing if it is impossible. */
export function happen(what: Happening, zones: readonly SimulatedZone[], in_: SimulatedZone, at: number): void {
  const pod = in_.pods[at % Math.max(1, in_.pods.length)];
  const moves: Record<Happening, () => void> = {
    recover: () =>
      pod &&
      ["recovering", "crashing", "limping"].includes(pod.phase) &&
      Object.assign(pod, { phase: "ready", hasServed: true }),
    stumble: () => pod?.phase === "ready" && (pod.phase = "recovering"),
    crash: () => pod && (pod.phase === "ready" || pod.phase === "recovering") && (pod.phase = "crashing"),
    limp: () => pod && (pod.phase === "ready" || pod.phase === "recovering") && (pod.phase = "limping"),
    vanish: () => pod?.phase === "terminating" && (pod.phase = "missing"),
    recreate: () =>
      pod?.phase === "missing" && Object.assign(pod, { phase: "recovering", revision: in_.template, hasServed: false }),
    sync: () => sync(in_),
    syncAll: () => zones.forEach(sync),
    deploy: () => zones.forEach((zone) => void zone.template++),
    revert: () => zones.forEach((zone) => void (zone.template = Math.max(0, zone.template - 1))),
    pause: () => void (in_.paused = true),
    resume: () => void (in_.paused = false),
  };
  moves[what]();
}

function sync(zone: SimulatedZone): void {
  const there = zone.pods.filter((pod) => pod.phase !== "missing");
  zone.status = {
    ready: there.filter((pod) => pod.phase === "ready").length,
    replicas: there.length,
    updated: there.filter((pod) => pod.revision === zone.template).length,
    current: zone.status.current,
    update: zone.template,
    template: zone.template,
  };
}

/** The snapshot that a tick would gather: statuses as last written, pods as they currently are. */
export function observe(zones: readonly SimulatedZone[]): GroupSnapshot {
  return { namespace: "test", name: "ingester", zones: zones.map(observeZone) };
}

function observeZone({
  name,
  maxUnavailable,
  paused,
  template,
  pods,
  status,
}: SimulatedZone): GroupSnapshot["zones"][number] {
  const traits = pods.map((pod): PodTraits | null => {
    const { revision, phase, hasServed } = pod;
    if (phase === "missing") return null;
    const isBroken = phase === "crashing" || phase === "limping";
    const broken = isBroken ? { broken: "CrashLoopBackOff", working: phase === "limping" } : {};
    return {
      revision: `r${revision}`,
      ready: phase === "ready" || phase === "terminating",
      terminating: phase === "terminating",
      ...(hasServed && { restarts: 0 }),
      ...broken,
    };
  });
  return zone({
    name,
    replicas: pods.length,
    statusReplicas: status.replicas,
    statusReady: status.ready,
    currentRevision: `r${status.current}`,
    updateRevision: `r${status.update}`,
    generation: 2,
    observedGeneration: status.template === template ? 2 : 1,
    annotations: {
      "rollout-max-unavailable": String(maxUnavailable),
      ...(paused && { "grafana.com/rollout-paused": "true" }),
    },
    pods: Object.fromEntries(traits.entries()),
  });
}

/** Executes a decision. */
export function carryOut(decision: RolloutDecision, zones: readonly SimulatedZone[]): void {
  if (decision.action === "hold") return;
  const target = zones.find((zone) => zone.name === decision.zone.name);
  if (!target) throw new Error(`no zone ${decision.zone.name}`);
  if (decision.action === "finishZone") target.status.current = target.status.update;
  else for (const { name } of decision.pods) podNamed(target, name).phase = "terminating";
}

export function podNamed(zone: SimulatedZone, name: string): SimulatedPod {
  const pod = zone.pods[Number(name.slice(zone.name.length + 1))];
  if (!pod) throw new Error(`no pod ${name}`);
  return pod;
}

/** Nobody loses anything by its deletion. */
export const servesNothing = ({ phase, hasServed }: SimulatedPod): boolean =>
  phase === "crashing" || (phase === "recovering" && !hasServed);

export const isDown = (pod: SimulatedPod): boolean => pod.phase !== "ready";

/**
 * Kubelets and controllers do all they can: only a pod that crash-loops or limps and is not deleted stays unchanged.
 */
export function calmDown(zones: readonly SimulatedZone[]): void {
  for (const zone of zones) {
    for (const pod of zone.pods) {
      if (pod.phase === "terminating" || pod.phase === "missing")
        Object.assign(pod, { revision: zone.template, phase: "ready", hasServed: true });
      if (pod.phase === "recovering") Object.assign(pod, { phase: "ready", hasServed: true });
    }
    sync(zone);
  }
}
