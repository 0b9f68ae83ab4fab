/** The verdicts of budgets on disruptions, and how each is answered, counted and logged (§5.1, §8.7). */
import { RolloutError } from "../../infra/errors.ts";
import { hold, type Hold, type ObjectRef } from "../model/decision.ts";
import type { ReservationHandle } from "./reservation.ts";

interface VerdictFacts {
  /** 200 allows, 400 denies for good, 429 denies for now: drainers retry. */
  readonly code: 200 | 400 | 429;
  /** `reason` of the metric, as dashboards know it. */
  readonly metric: string;
  /** `reason` of the log line. */
  readonly log: string;
}

/** The original's sentence; also in the hold of a rollout that a budget of one zone denies. */
export const TOO_FEW_ZONES = "minimum number of StatefulSets not found";

/** The closed list of verdicts. */
export const VERDICTS = {
  Allowed: { code: 200, metric: "allowed", log: "zpdb met" },
  PodNotReady: { code: 200, metric: "pod-not-ready", log: "pod is not ready" },
  /** The disruption is pinned to another UID than the pod's: it cannot take effect. */
  OtherPod: { code: 200, metric: "other-pod", log: "the eviction is for another pod of the name" },
  PodNotInScope: { code: 200, metric: "pod-not-in-scope", log: "pod is not within a zpdb scope" },
  InvalidRequest: { code: 400, metric: "invalid-request", log: "not a valid create pod eviction request" },
  PodNotFound: { code: 400, metric: "pod-not-found", log: "unable to find pod by name" },
  SeveralBudgets: { code: 400, metric: "cfg-not-found", log: "several zpdbs select the pod" },
  BudgetInvalid: { code: 400, metric: "cfg-invalid", log: "the zpdb of the pod is not valid" },
  OwnerNotFound: { code: 400, metric: "sts-no-found", log: "unable to find pod owner" },
  /** The group of the pod is refused as a whole (§1.11.3). */
  TooManyZones: { code: 400, metric: "max-sts-exceeded", log: "the group of the pod has too many zones" },
  /** A zone of it has more text than is kept: its labels are not known. */
  LabelsTooLong: { code: 400, metric: "labels-too-long", log: "the labels of a zone are too long" },
  MaxUnavailableZero: { code: 429, metric: "max-unavailable-0", log: "max unavailable = 0" },
  TooFewZones: { code: 400, metric: "min-sts-not-found", log: TOO_FEW_ZONES },
  PartitionUnknown: { code: 400, metric: "partition-not-identified", log: "the partition of the pod is not known" },
  BudgetSpent: { code: 429, metric: "denied", log: "zpdb exceeded" },
  /** An earlier disruption of the pod was allowed: a second, unpinned one might reach its successor. */
  AllowedAlready: { code: 429, metric: "allowed-already", log: "the pod was allowed to go a moment ago" },
  PodTerminating: { code: 429, metric: "pod-terminating", log: "the pod is terminating" },
  /** Contention, an API error, or the request's deadline. */
  NotNow: { code: 429, metric: "not-now", log: "no decision could be made in time" },
} as const satisfies Readonly<Record<string, VerdictFacts>>;

export type VerdictReason = keyof typeof VERDICTS;

export interface Verdict {
  readonly reason: VerdictReason;
  /** Shown to the user if denied, otherwise logged. */
  readonly message: string;
  /** The pod and the budgets concerned. */
  readonly objects: readonly ObjectRef[];
}

export function verdict(reason: VerdictReason, message: string, objects: readonly ObjectRef[] = []): Verdict {
  return { reason, message, objects };
}

export function isAllowed({ reason }: Verdict): boolean {
  return VERDICTS[reason].code === 200;
}

/** The result of a request to disrupt pods: one type from the turn that judges it to its answer. */
export type DisruptionResult =
  /** `handles` are the reservations made for it that may be released. */
  | { readonly outcome: "allowed"; readonly verdict: Verdict; readonly handles: readonly ReservationHandle[] }
  | { readonly outcome: "denied"; readonly verdict: Verdict }
  /** Its verdict is `NotNow`. It is asked again until its deadline. A `cause` other than a `Conflict` is a fault. */
  | { readonly outcome: "undecided"; readonly verdict: Verdict; readonly cause: unknown };

export function judged(found: Verdict, handles: readonly ReservationHandle[] = []): DisruptionResult {
  return isAllowed(found) ? { outcome: "allowed", verdict: found, handles } : { outcome: "denied", verdict: found };
}

/** The verdict of a process that cannot decide in time. */
export const NOT_NOW: Verdict = verdict("NotNow", "no decision could be made in time, try again");

/** The result of a request that could not be judged; without a cause if another process wrote first. */
export function undecided(
  cause: unknown = new RolloutError("Conflict", "other processes always wrote first"),
): DisruptionResult {
  return { outcome: "undecided", verdict: NOT_NOW, cause };
}

/** Turns a denial into the hold of a rollout that wants to replace `pod` of `zone`. */
export function holdPod({ reason, message, objects }: Verdict, pod: Pick<ObjectRef, "name">, zone: ObjectRef): Hold {
  return hold(reasonOf(reason), `${pod.name} stays: ${message}`, [zone, ...objects]);
}

/** Turns a denial into the hold of a zone that is to shrink. */
export function holdDownscale({ reason, message, objects }: Verdict, zone: ObjectRef): Hold {
  return {
    ...hold(reasonOf(reason), `${zone.name} waits to shrink: ${message}`, [zone, ...objects]),
    dedupKey: `${zone.name} ${reason}`,
  };
}

function reasonOf(reason: VerdictReason): "BudgetSpent" | "BudgetUnusable" {
  return VERDICTS[reason].code === 429 ? "BudgetSpent" : "BudgetUnusable";
}
