/** The StatefulSet of a PhasedRollout, and its pods, as oracles read them. */
import { dig, type Fields, isTrue, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import type { History, Reads } from "./history.ts";
import { PHASED, PHASED_ROLLOUTS } from "./objects.ts";

/** No replicas reach it. */
export const HELD = 2_147_483_647;
/** Words of the paths of reads. */
export const PHASED_READS = { rollout: "phasedrollouts" } as const;
/** A PhasedRollout in the history; the StatefulSet has the name of its own. */
export const rolloutKey = (name: string): string => `${PHASED_ROLLOUTS} ${name}`;
export const ROLLOUT_KEY = rolloutKey(PHASED);
/** A budget of its pods alone, which knows of no other zone: so it lets none go. */
export const BUDGET_KEY = "budget";
export const selectsPhased = (budget: KubeObject): boolean =>
  dig(budget, "spec", "selector", "matchLabels", "app") === PHASED;

/** The PhasedRollout that manages the StatefulSet, and the partition that it had before, as it says. */
export const claimOf = (set: KubeObject): string | undefined => set.metadata.annotations?.["sts.plus/phasedRollout"];
export const originalOf = (set: KubeObject): string | undefined =>
  set.metadata.annotations?.["sts.plus/original-partition"];

export const specOf = (set: unknown) => ({
  replicas: numberOf(dig(set, "spec", "replicas")) ?? 1,
  partition: numberOf(dig(set, "spec", "updateStrategy", "rollingUpdate", "partition")) ?? 0,
});
/** The query of a PhasedRollout. */
export const exprOf = (spec: Fields): string => textOf(dig(spec, "check", "query", "expr")) ?? "";
export const isOutdated = (pod: KubeObject | undefined, revision: unknown): boolean =>
  pod?.metadata.labels?.["controller-revision-hash"] !== revision;
export const isOf = (pod: KubeObject | undefined, uid: unknown): pod is KubeObject =>
  listOf(pod?.metadata.ownerReferences).some((owner) => dig(owner, "uid") === uid);
const isServing = (pod: KubeObject): boolean => !pod.metadata.deletionTimestamp && isTrue(pod, "Ready");
/** Its containers end as they begin, or did and wait. */
export const isCrashing = (pod: KubeObject | undefined): boolean =>
  pod?.metadata.annotations?.["sim/crash"] !== undefined ||
  listOf(dig(pod, "status", "containerStatuses")).some(
    (one) => (numberOf(dig(one, "restartCount")) ?? 0) > 0 && dig(one, "ready") !== true,
  );

/** What a pod has been, as far as who writes may have read it; nothing of one that has never been. */
export type Versions = readonly (KubeObject | undefined)[];

/** For which a pod of which no container works is not ready before nobody waits for it any more. */
const LOST_MS = 300_000;

/** True of a pod that has not worked for that time, by the clock of whoever looks at it. */
function isLost(pod: KubeObject, at: number): boolean {
  const ready = listOf(dig(pod, "status", "conditions")).find((one) => dig(one, "type") === "Ready");
  const works = listOf(dig(pod, "status", "containerStatuses")).some((one) => dig(one, "ready") === true);
  return (
    !works && dig(ready, "status") === "False" && Date.parse(String(dig(ready, "lastTransitionTime"))) <= at - LOST_MS
  );
}

/**
 * True of an index of pods that nobody waits for: outdated ones that crash, or have not worked for long, from the last one
 * down to the first that serves, and those that are not made because of them. `pods` are those below the partition; `latest`
 * is the time by the clock that is most ahead.
 */
export function findIncurable(
  pods: readonly Versions[],
  { revision, latest }: { readonly revision: unknown; readonly latest: number },
): (index: number) => boolean {
  const isDead = (pod: KubeObject | undefined): boolean =>
    isCrashing(pod) || (pod !== undefined && isLost(pod, latest));
  const serves = (pod: KubeObject | undefined): boolean =>
    pod !== undefined && isOutdated(pod, revision) && isServing(pod);
  const serving = pods.findLastIndex((one) => one.length > 0 && one.every(serves));
  const lowest = pods.findIndex((one, i) => i > serving && one.some(isDead));
  const mayStay = (one: Versions): boolean => one.length === 0 || one.some((pod) => !pod || isDead(pod));
  return (index) => lowest >= 0 && index >= lowest && index < pods.length && mayStay(pods[index] ?? []);
}

export const isZone = (set: KubeObject | undefined): boolean => set?.metadata.labels?.["rollout-group"] !== undefined;
/** True of a PhasedRollout that says that its pods return to the revision before. */
export const isGoingBack = ({ status }: Readonly<Record<string, unknown>>): boolean =>
  listOf(dig(status, "conditions")).some(
    (one) => dig(one, "type") === "Updated" && dig(one, "reason") === "RollingBack",
  );
export const isRolling = (set: KubeObject | undefined): boolean =>
  (dig(set, "spec", "updateStrategy", "type") ?? "RollingUpdate") === "RollingUpdate";
export const isObserved = (set: KubeObject): boolean =>
  (numberOf(dig(set, "status", "observedGeneration")) ?? 0) >= (set.metadata.generation ?? 0);

export interface PhasedOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** Versions of the PhasedRollout, its StatefulSet and its pods. */
  readonly history: History;
  readonly reads: Reads;
  /** By how much a process may misjudge the time. */
  readonly misjudgedMs: number;
}

/** Since when all that was true was seen by this process, which sends a write at a time. */
export function knownAt({ reads }: PhasedOptions, actor: string, sentAt: number): number {
  const read = reads.lastBefore(actor, PHASED_READS.rollout, sentAt);
  return read ? read.sentAt : -Infinity;
}
