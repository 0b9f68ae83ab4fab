/** The two orders that rollouts go by: names by their bytes (§1.3), pods by their ordinals (§1.5.4). */

export function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return compareBytes(a.name, b.name);
}

function compareBytes(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The number at the end of the name of a StatefulSet's pod; NaN for a name without one. */
export function ordinalOf({ name }: { readonly name: string }): number {
  return Number(name.slice(name.lastIndexOf("-") + 1));
}

/** The ordinals of neighbouring pods. */
export interface OrdinalRange {
  readonly start: number;
  /** The ordinal after the last pod's. */
  readonly end: number;
}

/** The name of the StatefulSet in the name of its pod. */
export function ownerNameOf(pod: string): string {
  return pod.slice(0, pod.lastIndexOf("-"));
}

const RUNS = /\d+|\D+/g;

/** Natural order: runs of digits compare as numbers, so that `zone-a-2` comes before `zone-a-10`. */
export function byOrdinal(a: { readonly name: string }, b: { readonly name: string }): number {
  const left = a.name.match(RUNS) ?? [];
  const right = b.name.match(RUNS) ?? [];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const difference = compareRuns(left[i] ?? "", right[i] ?? "");
    if (difference !== 0) return difference;
  }
  return left.length - right.length || byName(a, b);
}

function compareRuns(a: string, b: string): number {
  const difference = Number(a) - Number(b);
  return Number.isNaN(difference) ? compareBytes(a, b) : difference;
}

/** The same items with those that match in front; the order within both parts is kept. */
export function moveToFront<T>(items: readonly T[], matches: (item: T) => boolean): T[] {
  return [...items.filter(matches), ...items.filter((item) => !matches(item))];
}
