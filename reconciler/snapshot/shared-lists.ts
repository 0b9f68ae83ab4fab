/**
 * Lists of pods that several StatefulSets share: an API server goes through all pods of the namespace for each list,
 * however few it finds.
 */
import { groupBy } from "../model/order.ts";
import type { Labels, Zone } from "../model/zone.ts";

/** A list that finds the pods of these zones, and possibly others. */
export interface SharedList {
  readonly labelSelector: string;
  readonly zones: readonly Zone[];
  /** The zone whose controller has this UID, if the zone's own selector matches the labels. */
  readonly zoneOf: (uid: string | undefined, labels: Labels) => Zone | undefined;
}

/** Characters of a selector, so that its URL stays below the 8 kB that proxies accept. */
const MAX_CHARACTERS = 3000;

/** A label of a selector that has neither an expression nor an empty value. */
const TERM = /^([\w./-]+)=([\w.-]+)$/;

/**
 * Plans the lists for zones of one namespace, with `MAX_CHARACTERS` of selector each unless one zone alone needs more.
 * Zones share lists if their selectors name the same labels, and no expressions; any other has a list of its own.
 */
export function planLists(zones: readonly Zone[]): SharedList[] {
  const alike = groupBy(zones, ({ selector, uid }) => {
    const labels = labelsOf(selector);
    return labels ? Object.keys(labels).toSorted().join() : `${selector} ${uid}`;
  });
  return [...alike.values()].flatMap((same) => splitByLength(same).map(listOf));
}

function labelsOf(selector: string): Labels | undefined {
  const terms = selector.split(",").map((term) => TERM.exec(term));
  return terms.every((term) => term !== null)
    ? Object.fromEntries(terms.map(([, key = "", value = ""]) => [key, value]))
    : undefined;
}

function splitByLength(zones: readonly Zone[]): Zone[][] {
  const parts: Zone[][] = [];
  let left = 0;
  for (const zone of zones) {
    left -= zone.selector.length;
    if (left < 0 || parts.length === 0) {
      parts.push([]);
      left = MAX_CHARACTERS - zone.selector.length;
    }
    parts.at(-1)?.push(zone);
  }
  return parts;
}

function listOf(zones: readonly Zone[]): SharedList {
  const owners = new Map(zones.map((zone) => [zone.uid, { zone, own: Object.entries(labelsOf(zone.selector) ?? {}) }]));
  return {
    labelSelector: joinSelectors(zones),
    zones,
    zoneOf(uid, labels) {
      const { zone, own = [] } = owners.get(uid ?? "") ?? {};
      return own.every(([key, value]) => labels[key] === value) ? zone : undefined;
    },
  };
}

/** Selects all that the zones' selectors do: each label has a value that it has in one of them. */
function joinSelectors([first, ...others]: readonly Zone[]): string {
  if (!first || others.length === 0) return first?.selector ?? "";
  const values = new Map<string, Set<string>>();
  for (const { selector } of [first, ...others])
    for (const [key, value] of Object.entries(labelsOf(selector) ?? {}))
      values.set(key, (values.get(key) ?? new Set()).add(value));
  const terms = [...values].map(([key, all]) => {
    const list = [...all].join();
    return all.size === 1 ? `${key}=${list}` : `${key} in (${list})`;
  });
  return terms.join();
}
