/**
 * Every group gets a closer look, pods and all, at least every 5 minutes, even if its status says that it is settled. Each group has a
 * moment of its own within the 5 minutes, so that the looks spread; up to when they have been taken is kept on the Lease, across processes.
 */

const PERIOD_MS = 5 * 60_000;

/** Annotations of the Lease. Where ticks are cut short, a cycle of looks goes over several: `since` is when it began, after the group `from`. */
const NOTES = { until: "zonewise/looked-until", since: "zonewise/looking-since", from: "zonewise/looking-from" } as const;

type Notes = Map<string, string>;

/** Up to when every group that was due has had its closer look, milliseconds since the epoch; undefined if that is not known. */
export function lookedUntil(notes: Notes): number | undefined {
  const noted = notes.get(NOTES.until);
  return noted === undefined ? undefined : Date.parse(noted);
}

/** A tick, in which groups had their turns in the order of their keys. */
export interface Turns {
  readonly startedAt: number;
  /** The group that was begun last before it. */
  readonly after: string;
  readonly groups: readonly string[];
  /** How many of them were begun. */
  readonly begun: number;
}

/** Notes the looks of a tick: they count once every group has had its turn, from the start of the first tick on. */
export function noteLooks(notes: Notes, { startedAt, after, groups, begun }: Turns): void {
  const tickAt = new Date(startedAt).toISOString();
  const open = notes.get(NOTES.since) || undefined;
  const since = open ?? tickAt;
  const from = open === undefined ? after : (notes.get(NOTES.from) ?? "");
  const isLeft = (key: string): boolean => (after < from ? key > after && key <= from : key > after || key <= from);
  const isOver = begun >= groups.filter(isLeft).length;
  if (isOver) notes.set(NOTES.until, begun === groups.length ? tickAt : since);
  if (isOver && open === undefined) return;
  // Annotations are merged: one that is left out would stay.
  notes.set(NOTES.since, isOver ? "" : since);
  notes.set(NOTES.from, isOver ? "" : from);
}

/** The groups whose moment lies between `lookedUntil` and `now` (milliseconds since the epoch), and all of them if that is a period or more. */
export function dueForCloserLook(lookedUntil: number | undefined, now: number): (key: string) => boolean {
  if (lookedUntil === undefined || now - lookedUntil >= PERIOD_MS || now < lookedUntil) return () => true;
  return (key) => {
    const moment = hash(key) % PERIOD_MS;
    const latest = now - ((((now - moment) % PERIOD_MS) + PERIOD_MS) % PERIOD_MS);
    return latest > lookedUntil;
  };
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value;
}
