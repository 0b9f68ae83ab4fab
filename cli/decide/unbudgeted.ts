/**
 * A pod of a rollout group that no disruption budget selects: nothing refuses its eviction while pods of another zone
 * are away. Pure.
 */
import { listSome } from "../../infra/cut.ts";
import type { PodDisruptionBudget } from "../../infra/kubernetes/resources.ts";
import { isReady } from "../../reconciler/model/health.ts";
import { matchesSelector } from "../../reconciler/model/label-selector.ts";
import type { Pod } from "../../reconciler/model/pod.ts";
import { how, zonewise } from "../../reconciler/model/remedy.ts";
import type { Zone, ZoneWithPods } from "../../reconciler/model/zone.ts";
import { judgeDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import type { World } from "../../reconciler/plan/world.ts";
import { explainDenial, type Explanation, NOT_JUDGED } from "./answer.ts";

/** True if the PodDisruptionBudget selects the pods of all these zones: it counts them together. */
export const guardsAll = (
  { metadata, spec }: PodDisruptionBudget,
  zones: readonly Pick<Zone, "namespace" | "podLabels">[],
): boolean =>
  zones.every(
    ({ namespace, podLabels }) =>
      metadata?.namespace === namespace && spec?.selector !== undefined && matchesSelector(spec.selector, podLabels),
  );

export interface Unbudgeted {
  /** Why the pods of this zone have to stay; undefined if all other zones are complete. */
  readonly degraded: string | undefined;
  /** Why nothing refuses its eviction. */
  readonly message: string;
}

/**
 * Undefined for a pod that a budget selects, that a PodDisruptionBudget guards, or whose group has no other zone. The
 * world of a group that has lost all its StatefulSets has no zones.
 */
export function findUnbudgeted(
  { pod, world, group }: { readonly pod: Pod; readonly world: World; readonly group: string },
  others: readonly PodDisruptionBudget[],
): Unbudgeted | undefined {
  const zones = zonesIn(world);
  if (zones.length === 1 || judgeDisruption(world, pod).verdict.reason !== "PodNotInScope") return undefined;
  const live = zones.filter(({ replicas }) => replicas > 0);
  if (live.length > 0 && others.some((other) => guardsAll(other, live))) return undefined;
  return {
    degraded: whyOthersComeFirst(pod, world),
    message: `no disruption budget selects pods of group ${group}: nothing refuses evictions in a second zone`,
  };
}

/** Why the pod has to stay where no budget counts the other zones; undefined if these are complete. */
export function whyOthersComeFirst(pod: Pod, world: World): string | undefined {
  const degraded = zonesIn(world)
    .filter((zone) => zone.name !== pod.madeBy && zone.uid !== pod.owner && isDegraded(zone))
    .map(({ name }) => name);
  return degraded.length === 0 ? undefined : `${listSome(degraded)} has pods that are missing or not ready`;
}

/** Answers that nobody judges the eviction, which the first answer is about. */
export function denyUnbudgeted(
  answers: readonly Explanation[],
  { degraded, message }: Unbudgeted,
  { pod, world }: { readonly pod: Pod; readonly world: World },
): Explanation[] {
  const [eviction, ...rest] = answers;
  if (!eviction) return [];
  const no = explainDenial({
    question: eviction.question,
    reason: "NoBudget",
    rule: "a disruption budget selects the pods of a group: it refuses evictions in a second zone",
    message: degraded === undefined ? message : `${degraded}; ${message}`,
    objects: [{ kind: "Pod", name: pod.name }],
    remedy: how("create a budget, as doctor proposes", zonewise(world, "doctor")),
  });
  return [{ ...no, answer: degraded === undefined ? NOT_JUDGED : "no" }, ...rest];
}

/** With the pods that StatefulSets have left behind, as zones. */
export const zonesIn = ({ zones, orphans = [] }: World): readonly ZoneWithPods[] => [...zones, ...orphans];

export const isDegraded = (zone: ZoneWithPods | undefined): boolean =>
  zone !== undefined && (zone.pods.length < zone.replicas || zone.pods.some((pod) => !isReady(pod)));
