/** Reads PhasedRollouts and their StatefulSets: one list of each a namespace, however many there are. */
import type { Source } from "../../../infra/kubernetes/context.ts";
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import { absent } from "../../../infra/errors.ts";
import { phasedRollouts, type CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import { pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import type { SuccessWhen } from "../../checks/check.ts";
import { readAll } from "../../snapshot/gather.ts";
import { selectorText } from "../../model/label-selector.ts";
import { readPod } from "../../model/pod.ts";
import type { PhasedList } from "../../model/outcome.ts";
import { targetNeedsPods } from "../decide-phased.ts";
import { readPhasedRollout, type PhasedRollout } from "../phased-rollout.ts";
import { podsByIndex, readTarget, type Target } from "../target.ts";

/** A PhasedRollout with its StatefulSet. */
export interface GatheredRollout {
  readonly rollout: PhasedRollout;
  /** Undefined if there is none. */
  readonly target: Target | undefined;
  /** The PhasedRollout that the StatefulSet names as its owner, if it exists. */
  readonly owner: PhasedRollout | undefined;
}

interface ObjectKey {
  readonly namespace: string;
  readonly name: string;
}

const keyOf = ({ namespace, name }: ObjectKey): string => `${namespace}/${name}`;

/** PhasedRollouts with their StatefulSets, and the lists that they are from. These alone outlive the tick. */
export interface GatheredRollouts {
  readonly list: PhasedList;
  readonly rollouts: readonly GatheredRollout[];
}

/**
 * All PhasedRollouts of a namespace ("" for all). Without any, StatefulSets are not read. Rejects with `NotFound` if
 * the cluster does not know the kind.
 */
export async function gatherRollouts(
  namespace: string,
  successWhen: SuccessWhen,
  source: Source,
): Promise<GatheredRollouts> {
  const query = namespace === "" ? {} : { namespace };
  const read = (object: CustomObject): PhasedRollout => readPhasedRollout(object, successWhen);
  const found = await readAll({ resource: phasedRollouts, query, read }, source);
  const rollouts = found.items;
  const list = {
    namespace,
    rolloutsAt: found.resourceVersion,
    targets: rollouts.map((rollout) => keyOf({ namespace: rollout.namespace, name: rollout.targetRef })),
  };
  if (rollouts.length === 0) return { list, rollouts: [] };
  const targets = await readAll({ resource: statefulSets, query, read: readTarget }, source);
  const byKey = new Map(targets.items.map((target) => [keyOf(target), target]));
  const owners = new Map(rollouts.map((rollout) => [keyOf(rollout), rollout]));
  const withTarget = (rollout: PhasedRollout): GatheredRollout => {
    const target = byKey.get(keyOf({ namespace: rollout.namespace, name: rollout.targetRef }));
    return {
      rollout,
      target,
      owner: target && owners.get(keyOf({ namespace: target.namespace, name: target.owner ?? "" })),
    };
  };
  return { list: { ...list, targetsAt: targets.resourceVersion }, rollouts: rollouts.map(withTarget) };
}

/** Reads one PhasedRollout and its StatefulSet again; undefined if it is gone. */
export async function gatherAgain(
  { rollout, owner }: GatheredRollout,
  { cluster, successWhen }: Source & { readonly successWhen: SuccessWhen },
  call?: Call,
): Promise<GatheredRollout | undefined> {
  const { namespace, name, targetRef } = rollout;
  const again = await cluster.get(phasedRollouts, { namespace, name }, call).catch(absent);
  if (!again) return undefined;
  // After the PhasedRollout, as in the lists: the generation that a status states is never newer than the StatefulSet
  // that it is about.
  const set = await cluster.get(statefulSets, { namespace, name: targetRef }, call).catch(absent);
  const current = readPhasedRollout(again, successWhen);
  const target = set && readTarget(set);
  const others = owner?.name === target?.owner ? owner : undefined;
  return { rollout: current, target, owner: target?.owner === name ? current : others };
}

/** The pods of the StatefulSet by their index, if a decision needs them. */
export async function gatherPods(
  { rollout, target }: GatheredRollout,
  source: Source,
): Promise<ReturnType<typeof podsByIndex>> {
  if (!target || !targetNeedsPods({ rollout, target })) return new Map();
  const query = { namespace: target.namespace, labelSelector: selectorText(target.selector) };
  return podsByIndex(target, (await readAll({ resource: pods, query, read: readPod }, source)).items);
}
