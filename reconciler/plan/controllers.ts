/**
 * What others do in a world between two steps: controllers, kubelets and Prometheus.
 *
 * The StatefulSet controller and the kubelets work as if they had time to finish: pods that are gone come back
 * at the update revision, surplus ones go, and every pod that can become ready is ready. A pod that cannot come up
 * stays as it is, and one that an earlier StatefulSet has left behind keeps its name from the controller.
 */
import type { Pod } from "../model/pod.ts";
import type { ZoneWithPods } from "../model/zone.ts";
import { isReady, isTerminating, readyHealth } from "../model/health.ts";
import type { World } from "./world.ts";
import { advanceGate } from "../gates/advance.ts";
import type { Gate } from "../gates/gate.ts";
import { isHeld } from "../gates/hold.ts";
import { outlineOf } from "../gates/record.ts";
import { identityOf, type RolloutView, wantedBy } from "../gates/rollout.ts";
import type { CheckAnswer, CheckSpec } from "../checks/check.ts";
import type { Answers } from "../checks/result.ts";
import { decideUngated } from "../rollout/decide-rollout.ts";
import { snapshotOf } from "./next-step.ts";

/** The world after that, and the milliseconds that it took; undefined if nothing is left for them to do. */
export function settle(world: World): { readonly world: World; readonly tookMs: number } | undefined {
  const pending = world.zones.filter((zone) => !zone.terminating && isPending(zone));
  if (pending.length === 0) return undefined;
  const waits = pending.filter(isStarting).map(({ uid }) => world.readyMs.get(uid) ?? 0);
  const tookMs = Math.max(0, ...waits);
  const now = world.now + tookMs;
  const zones = world.zones.map((zone) => (pending.includes(zone) ? settleZone(zone, now) : zone));
  return { tookMs, world: { ...world, zones, now } };
}

const canStart = (pod: Pod): boolean => !isReady(pod) && pod.health.fault === undefined;
const isStarting = (zone: ZoneWithPods): boolean =>
  zone.pods.some(canStart) || zone.pods.length < zone.replicas - (zone.strangers?.length ?? 0);

function isPending(zone: ZoneWithPods): boolean {
  return !zone.observed || isStarting(zone) || zone.pods.length > zone.replicas || !hasCounts(zone, countPods(zone));
}

function settleZone(zone: ZoneWithPods, now: number): ZoneWithPods {
  const there = new Map(zone.pods.map((pod) => [pod.name, pod]));
  const taken = new Set(zone.strangers?.map(({ name }) => name));
  const names = Array.from({ length: zone.replicas }, (_, i) => `${zone.name}-${zone.firstOrdinal + i}`);
  const pods = names.flatMap((name): Pod[] => {
    const pod = there.get(name);
    if (!pod && taken.has(name)) return [];
    if (!pod || isTerminating(pod)) return [createPod(zone, name, { uid: `${pod?.uid ?? name}'`, now })];
    return [canStart(pod) ? { ...pod, health: readyHealth(now), readySince: now } : pod];
  });
  return withCounts({ ...zone, pods, observed: true, observedGeneration: zone.generation });
}

/** The zone with a status that counts its pods. */
export function withCounts(zone: ZoneWithPods): ZoneWithPods {
  return { ...zone, status: { ...zone.status, ...countPods(zone) } };
}

function countPods({ pods, status }: ZoneWithPods) {
  const count = (matches: (pod: Pod) => boolean): number => pods.filter(matches).length;
  const at = (revision: string): number => count((pod) => pod.revision === revision && !isTerminating(pod));
  return {
    replicas: pods.length,
    ready: count(isReady),
    updated: at(status.updateRevision),
    current: status.currentRevision === status.updateRevision ? 0 : at(status.currentRevision),
  };
}

function hasCounts({ status }: ZoneWithPods, { replicas, ready, updated }: ReturnType<typeof countPods>): boolean {
  return status.replicas === replicas && status.ready === ready && status.updated === updated;
}

function createPod(
  zone: ZoneWithPods,
  name: string,
  { uid, now }: { readonly uid: string; readonly now: number },
): Pod {
  return {
    kind: "Pod",
    namespace: zone.namespace,
    name,
    uid,
    resourceVersion: "",
    revision: zone.status.updateRevision,
    owner: zone.uid,
    madeBy: zone.name,
    createdAt: undefined,
    health: readyHealth(now),
    readyAfterMs: undefined,
    restarts: 0,
    labels: zone.podLabels,
    phase: "Running",
    controller: { kind: "StatefulSet", name: zone.name },
    readySince: now,
  };
}

// The gates of a world, with a Prometheus that answers every check with success.

interface SimulatedGates {
  readonly world: World;
  /** Something other than results of checks has changed: the next tick follows at once. */
  readonly progressed: boolean;
  /** When the next check is due, milliseconds since the epoch. */
  readonly nextAt: number | undefined;
}

/** The gates as a tick would write them. */
export function followGates(world: World): SimulatedGates {
  if (world.gates.length === 0) return { world, progressed: false, nextAt: undefined };
  const { zones, now } = world;
  const rollout = { identity: identityOf(zones), zones, now, wanted: wantedBy(decideUngated(snapshotOf(world))) };
  const view: RolloutView = { ...rollout, isHeld: isHeld(world.gates, rollout) };
  const followed = world.gates.map((gate) => follow(gate, view));
  const times = followed.flatMap(({ nextAt }) => nextAt ?? []);
  return {
    world: { ...world, gates: followed.map(({ gate }) => gate) },
    progressed: followed.some(({ gate }, i) => outlineOf(gate.record) !== outlineOf(world.gates[i]?.record)),
    nextAt: times.length > 0 ? Math.min(...times) : undefined,
  };
}

function follow(gate: Gate, view: RolloutView): { readonly gate: Gate; readonly nextAt: number | undefined } {
  const { due } = advanceGate(gate, view, new Map());
  const answers: Answers = new Map(due.map((check) => [check.name, succeed(check, view.now)]));
  const { record, nextAt } = advanceGate(gate, view, answers);
  return { gate: { ...gate, record, observedGeneration: gate.generation }, nextAt };
}

function succeed({ successWhen }: CheckSpec, at: number): CheckAnswer {
  if (successWhen === "WithinBaseline") return { kind: "Comparison", isWithin: true, text: "", at };
  return { kind: "Vector", samples: successWhen === "Data" ? 1 : 0, warnings: [], at };
}
