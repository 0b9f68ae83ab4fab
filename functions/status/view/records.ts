/** The data of the status page: the records of the reconciler and the functions, as read from the cluster. Pure. */
import type { Pod } from "../../../reconciler/model/pod.ts";
import type { ZoneWithPods } from "../../../reconciler/model/zone.ts";
import type { Protection } from "../../../reconciler/budget/protection.ts";
import type { Reservations } from "../../../reconciler/budget/reservation.ts";
import type { GroupPhase, RolloutGroupStatus } from "../../../reconciler/group-status/status.ts";
import { compareByNeed, type ShownGroup, viewGroup } from "../../../reconciler/group-status/view.ts";
import { byName } from "../../../reconciler/model/order.ts";
import type { NoTick } from "../../../reconciler/report/ticking.ts";

export interface PageGroup {
  readonly namespace: string;
  readonly name: string;
  readonly status: Partial<RolloutGroupStatus>;
}

export interface LivePod extends Pod {
  readonly images: readonly string[];
}

/** A zone with its pods, as they are. Its `images` are its template's, and so the update revision's. */
export interface LiveZone extends ZoneWithPods {
  readonly pods: readonly LivePod[];
}

export interface BudgetRecord {
  readonly namespace: string;
  readonly name: string;
  readonly protection: Partial<Protection>;
  readonly reservations: Reservations;
}

export interface DecisionRecord {
  readonly namespace: string;
  /** `StatefulSet default/zone-a`. */
  readonly object: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  /** RFC 3339. */
  readonly time: string;
}

export interface ReconcilerRecord {
  readonly holder?: string;
  /** When its last tick that read the cluster began, RFC 3339. */
  readonly lastTick?: string;
  /** When the webhooks' certificate expires, milliseconds since the epoch. */
  readonly certificateExpiry?: number;
  /** Set if it does not tick, or if that is not known. */
  readonly noTick?: NoTick;
}

/** A part that could not be read: it may not be empty. */
export const UNREAD = "unread";

/** Undefined if the cluster has no definition of it. */
export type Part<T> = readonly T[] | typeof UNREAD | undefined;

export interface PageRecords {
  readonly readAt: number;
  readonly reconciler: ReconcilerRecord | typeof UNREAD;
  readonly groups: Part<PageGroup>;
  /** The namespaces whose groups could not be read. */
  readonly unread: readonly string[];
  /** The zones of the groups whose pods were read, by `keyOf`. */
  readonly zones: ReadonlyMap<string, readonly LiveZone[]>;
  readonly budgets: Part<BudgetRecord>;
  readonly decisions: Part<DecisionRecord>;
  /** The read errors, in sentences. */
  readonly problems: readonly string[];
}

/** The items of a part; empty if it was not read or does not exist. */
export const listPart = <T>(part: Part<T>): readonly T[] => (part === UNREAD ? [] : (part ?? []));

/** Whether groups are not known: in `focus`'s namespace, or at all. */
export const isUnread = ({ groups, unread }: PageRecords, focus: string | undefined): boolean =>
  groups === UNREAD || (focus !== undefined && unread.includes(focus.slice(0, focus.indexOf("/"))));

export const keyOf = ({ namespace, name }: Pick<PageGroup, "namespace" | "name">): string => `${namespace}/${name}`;

/** The phases in the order of the headline: phases that need a person come first. */
export const PHASE_ORDER: readonly GroupPhase[] = ["Blocked", "Waiting", "Paused", "RollingOut", "Ready"];

/** The page shows records alone: whether a spec is newer, only its StatefulSet tells. */
export const viewPageGroup = ({ status }: PageGroup, isOld = false): ShownGroup =>
  viewGroup({ status, isSeen: true, isOld });

/** A group that is done: its pods are not read. */
export function isQuiet(group: PageGroup): boolean {
  const { standing, zones } = viewPageGroup(group);
  return standing === "done" && zones.every(({ gatesBypassedUntil }) => gatesBypassedUntil === undefined);
}

/** What needs a person comes first, groups that are done last; then by name. */
export const sortGroups = (groups: readonly PageGroup[]): PageGroup[] =>
  groups
    .map((group) => ({ group, quiet: Number(isQuiet(group)), view: viewPageGroup(group), name: keyOf(group) }))
    .toSorted((a, b) => a.quiet - b.quiet || compareByNeed(a.view, b.view) || byName(a, b))
    .map(({ group }) => group);
