/** What `zonewise doctor` knows of a cluster, and what a check is: a row of the table in `checks.ts`. Pure. */
import type {
  Definition,
  PodDisruptionBudget,
  StatefulSet,
  WebhookConfiguration,
} from "../../../infra/kubernetes/resources.ts";
import type { Guard } from "../../../reconciler/budget/guard.ts";
import type { StoredBudget } from "../../../reconciler/budget/zpdb.ts";
import type { Gate } from "../../../reconciler/gates/gate.ts";
import { kubectl } from "../../../reconciler/model/remedy.ts";
import type { Zone, ZoneWithPods } from "../../../reconciler/model/zone.ts";
import type { Target } from "../../../reconciler/phased/target.ts";
import type { NoTick } from "../../../reconciler/report/ticking.ts";
import type { Phased } from "../explain-phased.ts";

/** A StatefulSet as it is stored, and as Zonewise reads it. */
export interface StoredZone {
  readonly object: StatefulSet;
  readonly zone: Zone;
}

/** The names of the labels and annotations of an object. */
export interface Keyed {
  /** As kubectl takes it: `statefulset`. */
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly keys: Readonly<Record<"label" | "annotation", readonly string[]>>;
  /** What its reader says of it: a key that it names is not reported again. */
  readonly problems?: readonly string[];
}

/** What could not be read. */
interface Unread {
  readonly object: string;
  readonly message: string;
  readonly fix: string;
}

/** What was read of the cluster. A list that may not be read is empty: `unread` says so then. */
export interface Found {
  readonly unread: readonly Unread[];
  /** The reconcilers that do not tick, or whose ticking is unknown. */
  readonly noTicks: readonly NoTick[];
  /** The budgets, each with the webhook that is asked about evictions in its namespace. */
  readonly guards: readonly { readonly budget: string; readonly guard: Guard }[];
  readonly webhooks: readonly WebhookConfiguration[];
  /** The kinds that the cluster does not know, and what is off without them. */
  readonly missingKinds: readonly { readonly group: string; readonly kind: string; readonly what: string }[];
  /** The definitions of the kinds that the original systems define, too. */
  readonly definitions: readonly Definition[];
  /** The namespaces that the original serves, and in which our reconciler ticks, or may tick. */
  readonly originals: readonly string[];
  readonly budgets: readonly StoredBudget[];
  /** PodDisruptionBudgets; undefined if they, or the zone-aware budgets, may not be read. */
  readonly others: readonly PodDisruptionBudget[] | undefined;
  /** All StatefulSets, in a group or not. */
  readonly sets: readonly StoredZone[];
  /** Pods whose StatefulSet is gone, or is none of their group's, as zones. */
  readonly orphans: readonly { readonly group: string; readonly zone: ZoneWithPods }[];
  readonly phased: readonly Phased[];
  /** The StatefulSets that say which PhasedRollout manages them, where PhasedRollouts may be read. */
  readonly claimed: readonly Pick<Target, "namespace" | "name" | "owner">[];
  readonly gates: readonly Gate[];
  /** The StatefulSets, gates and PhasedRollouts. */
  readonly keyed: readonly Keyed[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface DoctorFacts extends Found {
  /** The StatefulSets as zones, in a group or not. */
  readonly zones: readonly Zone[];
  /** The zones of each group, by `groupKey`. */
  readonly groups: ReadonlyMap<string, readonly Zone[]>;
}

/** `error`: it does not work, or does something that nobody wants. `warning`: it may be intended. */
type Level = "error" | "warning";

export interface Finding {
  readonly level: Level;
  readonly check: string;
  /** `statefulset/zone-a`. */
  readonly object: string;
  readonly message: string;
  /** Lines, as every remedy has them (reconciler/model/remedy.ts). */
  readonly fix: string;
}

/** `Case`: what the check has found among the facts. */
interface Row<Case> {
  readonly check: string;
  readonly level: Level;
  readonly when: (facts: DoctorFacts) => readonly Case[];
  readonly object: (found: Case) => string;
  readonly message: (found: Case) => string;
  readonly fix: (found: Case) => string;
}

export interface Check {
  readonly check: string;
  readonly level: Level;
  readonly find: (facts: DoctorFacts) => Finding[];
}

/** A row whose cases only it knows. */
export const row = <Case>({ check, level, when, object, message, fix }: Row<Case>): Check => ({
  check,
  level,
  find: (facts) =>
    when(facts).map((one) => ({ level, check, object: object(one), message: message(one), fix: fix(one) })),
});

interface Placed {
  readonly namespace: string;
  readonly name: string;
}

export const ofZone = ({ zone }: { readonly zone: Pick<Zone, "name"> }): string => `statefulset/${zone.name}`;

/** The command that gives a StatefulSet labels. */
export const label = (set: Placed, pairs: string): string =>
  kubectl(set, `label --overwrite statefulset ${set.name} ${pairs}`);
export const edit = (set: Placed, kind = "statefulset"): string => kubectl(set, `edit ${kind} ${set.name}`);
