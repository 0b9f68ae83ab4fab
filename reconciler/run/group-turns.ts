/**
 * The turns of groups. All groups stand in one circular order, by a hash of their keys, so that a group that comes or
 * goes moves no other. Ticks go round it, and begin every group once before any is begun twice. If a namespace has no
 * room for its next group, the round passes it, and the namespace goes on with that group at its next place. The
 * progress is kept only in annotations of the Lease: the next process continues it.
 */
import type { Clock } from "../../infra/clock.ts";
import { spreadHash } from "../model/hash.ts";
import { groupBy } from "../model/order.ts";
import { namespaceOf } from "./steps.ts";

/**
 * Annotations of the Lease: the place that was reached last, and the groups that were begun last in namespaces that had
 * no room for another.
 */
const LAST_STARTED = "zonewise/last-started-group";
export const LAST_OF_FULL = "zonewise/last-started-of-full-namespaces";

/** Namespaces whose last begun group is remembered, those that lacked room most recently: an annotation has a bound. */
const MAX_FULL = 64;

/**
 * A group at its place. The places of a namespace are those of its groups; which of them fills a place depends on the
 * one begun last.
 */
interface Turn<T> {
  readonly key: string;
  readonly group: T;
  readonly place: string;
  /** The group of the namespace whose turn comes before. */
  readonly previous: string;
}

export interface GroupTurns {
  /** The groups in the order of their turns, without those under way. */
  readonly order: <T>(groups: ReadonlyMap<string, T>, busy: ReadonlySet<string>) => Turn<T>[];
  /** Notes that the group is begun. */
  readonly begin: (turn: Turn<unknown>) => void;
  /** Notes that its namespace has no room for the group: the round goes on without it. */
  readonly pass: (turn: Turn<unknown>) => void;
  /** Notes that the tick leaves the step out. Returns for how long it has been left out, in milliseconds. */
  readonly leave: (key: string, why: WhyLeft) => number;
  /** True if a tick has left out this step, or waits for the room of any. */
  readonly isAwaited: (key: string) => boolean;
}

/** Its step is under way; too many slow steps are; the tick has begun groups for long enough. */
export type WhyLeft = "busy" | "noRoom" | "noTime";

interface Left {
  readonly since: number;
  readonly why: WhyLeft;
}

export function createGroupTurns(
  { monotonic }: Pick<Clock, "monotonic">,
  annotations: Map<string, string>,
): GroupTurns {
  const leftOut = new Map<string, Left>();
  const lastOfFull = readLast(annotations);
  const writeLast = (): void => void annotations.set(LAST_OF_FULL, [...lastOfFull.values()].join(" "));

  return {
    order(groups, busy) {
      for (const key of leftOut.keys()) if (!groups.has(key) && !busy.has(key)) leftOut.delete(key);
      const round = sortByPlace([...groups.keys()].filter((key) => !busy.has(key)));
      const places = startAfter(round, annotations.get(LAST_STARTED));
      const queues = new Map(
        [...groupBy(places, namespaceOf)].map(([namespace, own]) => [
          namespace,
          queueOf(own, lastOfFull.get(namespace)),
        ]),
      );
      return places.flatMap((place) => {
        const next = queues.get(namespaceOf(place))?.next().value;
        const group = next && groups.get(next.key);
        return next && group !== undefined ? { ...next, group, place } : [];
      });
    },
    begin({ key, place }) {
      leftOut.delete(key);
      annotations.set(LAST_STARTED, place);
      if (!lastOfFull.has(namespaceOf(key))) return;
      lastOfFull.set(namespaceOf(key), key);
      writeLast();
    },
    pass({ key, previous }) {
      const namespace = namespaceOf(key);
      if (lastOfFull.has(namespace)) return;
      lastOfFull.set(namespace, previous);
      const [oldest] = lastOfFull.keys();
      if (lastOfFull.size > MAX_FULL && oldest !== undefined) lastOfFull.delete(oldest);
      writeLast();
    },
    leave(key, why) {
      const before = leftOut.get(key);
      // While its own step is under way, a group does not wait for others.
      const since = before && (before.why === "busy") === (why === "busy") ? before.since : monotonic();
      leftOut.set(key, { since, why });
      return monotonic() - since;
    },
    isAwaited: (key) => leftOut.has(key) || [...leftOut.values()].some(({ why }) => why === "noRoom"),
  };
}

/** The group begun last, by the namespace. */
function readLast(annotations: ReadonlyMap<string, string>): Map<string, string> {
  const keys = (annotations.get(LAST_OF_FULL) ?? "")
    .split(" ")
    .filter((key) => key.includes("/"))
    .slice(-MAX_FULL);
  return new Map(keys.map((key) => [namespaceOf(key), key]));
}

const placeOf = (key: string): string => `${spreadHash(key).toString(16).padStart(8, "0")} ${key}`;

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function sortByPlace(keys: readonly string[]): string[] {
  const placed = keys.map((key) => ({ key, place: placeOf(key) }));
  return placed.toSorted((a, b) => compare(a.place, b.place)).map(({ key }) => key);
}

/** The same circle, from the key after `last`, which may be gone. */
function startAfter(round: readonly string[], last: string | undefined): readonly string[] {
  if (last === undefined || last === "") return round;
  const place = placeOf(last);
  const first = round.findIndex((key) => placeOf(key) > place);
  return first <= 0 ? round : [...round.slice(first), ...round.slice(0, first)];
}

/** The groups of a namespace after the one begun last; `own` is a circle already. */
function* queueOf(
  own: readonly string[],
  last: string | undefined,
): Generator<{ readonly key: string; readonly previous: string }, undefined> {
  const queue = last === undefined ? own : startAfter(sortByPlace(own), last);
  for (const [i, key] of queue.entries()) yield { key, previous: queue.at(i - 1) ?? key };
}
