/**
 * The one door to the decisions of a rollout: the objects of a group in, as a cluster has them; what comes next out.
 * Whoever rewrites how they are read and decided has this file to keep, and no case.
 */
import assert from "node:assert/strict";
import type { PodObject, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { RemainingZone } from "../../../reconciler/model/outcome.ts";
import { orphanedZone, orphansByOwner } from "../../../reconciler/model/orphans.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import {
  readZone,
  withPods,
  type GateVerdicts,
  type GroupSnapshot,
  type ZoneWithPods,
} from "../../../reconciler/model/zone.ts";
import { whyLessRoom, whyStopBatch, zonesToList } from "../../../reconciler/rollout/continue-batch.ts";
import {
  countRemaining,
  decideByStatus,
  decideRollout,
  listRemaining,
} from "../../../reconciler/rollout/decide-rollout.ts";
import { batchLimitOf, countBatches, type RolloutDecision } from "../../../reconciler/rollout/decide-zone.ts";
import type { GroupObjects } from "../../builders/groups.ts";

interface Facts extends GroupObjects {
  readonly gates?: GateVerdicts | undefined;
}

export type Decision = RolloutDecision | undefined;

/** Objects never change: each is read once. */
function once<T extends object, R>(read: (object: T) => R): (object: T) => R {
  const known = new WeakMap<T, R>();
  return (object) => {
    const found = known.get(object) ?? read(object);
    known.set(object, found);
    return found;
  };
}

const zoneOf = once<StatefulSet, ReturnType<typeof readZone>>(readZone);
const podOf = once<PodObject, ReturnType<typeof readPod>>(readPod);

/** The group as a tick reads it. */
export function readGroup({ statefulSets, pods: objects, now, gates }: Facts): GroupSnapshot {
  const [zones, pods] = [statefulSets.map(zoneOf), objects.map(podOf)];
  const orphans = [...orphansByOwner(pods, zones)].map(([name, own]) =>
    orphanedZone(name, own, { owner: undefined, zones }),
  );
  return {
    zones: zones.map((zone) => withPods(zone, pods)),
    ...(orphans.length > 0 && { orphans }),
    ...(gates && { gates }),
    now,
  };
}

/** What the rollout does next; undefined if the group is settled. */
export const decideNext = (facts: Facts): Decision => decideRollout(readGroup(facts));

/** The same in one line: `delete a-0 a-1`, `finish a`, `hold Reason`, `settled`. */
export function decide(facts: Facts): string {
  const decision = decideNext(facts);
  if (!decision) return "settled";
  if (decision.action === "hold") return `hold ${decision.reason}`;
  const names = decision.action === "finishZone" ? [decision.zone] : decision.pods;
  const verb = decision.action === "finishZone" ? "finish" : "delete";
  return [verb, ...names.map(({ name }) => name.replace("ingester-zone-", ""))].join(" ");
}

/** What the StatefulSets tell without their pods; `readPods` if they do not tell enough. */
export const decideWithoutPods = ({ statefulSets }: GroupObjects): ReturnType<typeof decideByStatus> =>
  decideByStatus(statefulSets.map(zoneOf));

/** What is left of the rollout. */
export const listLeft = (facts: Facts): readonly RemainingZone[] => listRemaining(readGroup(facts).zones);

/** The same by the StatefulSets alone. */
export const countLeft = ({ statefulSets }: GroupObjects): readonly RemainingZone[] =>
  countRemaining(statefulSets.map(zoneOf));

/** How many pods of the first zone may be unavailable now, and in how many batches so many further ones are replaced. */
export const limitOf = (facts: Facts): number => batchLimitOf(firstOf(facts));
export const batchesOf = (facts: Facts, count: number): number => countBatches(firstOf(facts), count);

function firstOf(facts: Facts): ZoneWithPods {
  const [first] = readGroup(facts).zones;
  return first ?? assert.fail("no zone");
}

/** A batch of the first zone, between two of its deletions. */
export interface BatchFacts {
  /** As the batch was decided. */
  readonly judged: Facts;
  /** As StatefulSets are now. */
  readonly now: Facts;
  /** The ordinal of the pod that goes next. */
  readonly next: number;
  readonly servesNothing?: boolean;
}

/** Why the batch ends; and the zones whose pods tell more, if it does not. */
export function followBatch({ judged, now, next, servesNothing = false }: BatchFacts): {
  readonly why: string | undefined;
  readonly reads: readonly string[];
} {
  const { zones } = readGroup(judged);
  const zone = firstOf(judged);
  const pod = zone.pods[next] ?? assert.fail("no pod");
  const view = { judged: zones, zone, pod, servesNothing, now: readGroup(now).zones, at: now.now };
  return { why: whyStopBatch(view), reads: zonesToList(view).map(({ name }) => name) };
}

/** Why the batch does not begin, now that the pods of its zone were read again. */
export const whyNotBegun = (judged: Facts, now: Facts): string | undefined =>
  whyLessRoom(firstOf(judged), firstOf(now));
