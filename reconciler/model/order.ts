/** The two orders that rollouts go by: names by their bytes (§1.3), pods by their ordinals (§1.5.4). */

export function byName({ name: a }: { readonly name: string }, { name: b }: { readonly name: string }): number {
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

/** The order of the pods of one StatefulSet: `zone-a-2` comes before `zone-a-10`. */
export function byOrdinal(a: { readonly name: string }, b: { readonly name: string }): number {
  return ordinalOf(a) - ordinalOf(b);
}

/** The same items with those that match in front; the order within both parts is kept. */
export function moveToFront<T>(items: readonly T[], matches: (item: T) => boolean): T[] {
  return [...items.filter(matches), ...items.filter((item) => !matches(item))];
}
