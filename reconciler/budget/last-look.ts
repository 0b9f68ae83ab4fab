/**
 * What the last look at a whole budget found unavailable. It is a hint: the next denial is proven by reading a few of these pods again, and needs
 * no list. Nothing is ever allowed by it.
 *
 *   whole budget read -> pods that count as unavailable remembered -> eviction of another pod -> still unavailable, enough of them? -> denied
 *                                                                                             -> otherwise the whole budget is read
 */
import type { Zone } from "../model/zone.ts";
import type { BudgetZone, Member } from "./member.ts";
import { describeCount, type EvictionSnapshot, isReady } from "./tally.ts";
import { allowedUnavailable, type Budget } from "./zpdb.ts";

/** A pod that was not ready, reserved or missing. */
export interface Suspect {
  readonly pod: string;
  readonly zone: Zone;
}

export interface LastLook {
  /** Milliseconds on the monotonic clock. */
  readonly at: number;
  readonly budget: Budget;
  readonly zones: readonly Zone[];
  readonly suspects: readonly Suspect[];
}

/** The pods that would have to be unavailable still for an eviction to be denied: `needed` of them, all in one place. */
export interface Case {
  /** The zone of the pod that is to be evicted. */
  readonly own: Zone;
  readonly suspects: readonly Suspect[];
  /** 1 or more; 0 if the budget itself is the reason. */
  readonly needed: number;
  /** `zone-a`, or `partition 2`. */
  readonly where: string;
}

/** What is known of a suspect now: the pod, or undefined if it is gone; and its zone as it is now, where the pod is gone. */
export interface Reread {
  readonly suspect: Suspect;
  readonly pod: Member | undefined;
  readonly zone?: Zone | undefined;
}

type View = Pick<EvictionSnapshot, "now" | "budget" | "reservations">;

/** So many missing pods of a zone are remembered: any of them proves a denial, and a zone may ask for more than memory holds. */
const MOST_MISSING = 100;

/** Remembers a look; `at` in milliseconds on the monotonic clock. */
export function rememberLook(zones: readonly BudgetZone[], view: View, at: number): LastLook {
  const suspects = zones.flatMap(({ pods, ...zone }) => {
    const unready = pods.filter((pod) => !isReady(pod, view)).map(({ name }) => name);
    return [...unready, ...missingPods(zone, pods, MOST_MISSING)].map((pod) => ({ pod, zone }));
  });
  return { at, budget: view.budget, zones: zones.map(({ pods: _pods, ...zone }) => zone), suspects };
}

/** Names of pods that the zone is to have and has not, the first `most` of them. */
export function missingPods(zone: Zone, pods: readonly { readonly name: string }[], most: number): string[] {
  const expected = Math.max(zone.replicas, zone.status.replicas);
  const count = Math.min(most, expected - pods.length);
  if (count <= 0) return [];
  const there = new Set(pods.map(({ name }) => name));
  const missing: string[] = [];
  for (let ordinal = zone.firstOrdinal; ordinal < zone.firstOrdinal + expected && missing.length < count; ordinal++) {
    const name = `${zone.name}-${ordinal}`;
    if (!there.has(name)) missing.push(name);
  }
  return missing;
}

/** What to read again for an eviction of the pod of this name; undefined if nothing that was seen speaks against it, or if it would take more than `mostReads`. */
export function buildCase(podName: string, look: LastLook, mostReads: number): Case | undefined {
  const { budget } = look;
  const own = look.zones.find(({ name }) => podName.startsWith(`${name}-`) && /^\d+$/.test(podName.slice(name.length + 1)));
  if (!own || look.zones.length < 2) return undefined;
  const max = allowedUnavailable(budget, { spec: own.replicas, status: own.status.replicas });
  if (max === 0) return isZero(budget) ? { own, suspects: [], needed: 0, where: "" } : undefined;
  const others = look.suspects.filter(({ zone }) => zone.uid !== own.uid);
  const enough = (suspects: readonly Suspect[], needed: number, where: string): Case | undefined =>
    suspects.length >= needed && needed <= mostReads ? { own, suspects: suspects.slice(0, mostReads), needed, where } : undefined;
  if (budget.partitionOf) {
    const partition = budget.partitionOf(podName);
    if (partition === undefined) return undefined;
    const peers = others.filter(({ pod }) => budget.partitionOf?.(pod) === partition);
    return enough(peers, max, `partition ${partition}`);
  }
  const [first] = others;
  if (first)
    return enough(
      others.filter(({ zone }) => zone.uid === first.zone.uid),
      1,
      first.zone.name,
    );
  // A percentage is of the replicas that the zone has by now.
  if ("percent" in budget.allowance) return undefined;
  return enough(
    look.suspects.filter(({ pod, zone }) => zone.uid === own.uid && pod !== podName),
    max,
    own.name,
  );
}

/** A budget of 0 whatever the replicas are. */
function isZero({ allowance }: Budget): boolean {
  return "pods" in allowance ? allowance.pods === 0 : allowance.percent === 0;
}

/** The words of the denial if enough of the suspects are unavailable still; undefined if the whole budget has to be read. */
export function proveCase({ needed, where }: Case, reread: readonly Reread[], view: View): string | undefined {
  if (needed === 0) return "max unavailable = 0";
  const notReady = reread.filter(({ pod, suspect }) => pod && pod.owner === suspect.zone.uid && !isReady(pod, view)).length;
  const unknown = reread.filter(({ pod, suspect, zone }) => !pod && zone && isExpected(suspect, zone)).length;
  return notReady + unknown >= needed ? describeCount({ notReady, unknown }, where) : undefined;
}

/** The zone is the one that was seen, and is to have the pod. */
function isExpected({ pod, zone: seen }: Suspect, zone: Zone): boolean {
  const ordinal = Number(pod.slice(zone.name.length + 1));
  const end = zone.firstOrdinal + Math.max(zone.replicas, zone.status.replicas);
  return zone.uid === seen.uid && !zone.terminating && ordinal >= zone.firstOrdinal && ordinal < end;
}
