/**
 * Lists of pods that the zones of a group share: an API server goes through all pods of the namespace for each list,
 * however few it finds. They find the pods that carry the label of a group, too, whatever StatefulSet made them.
 */
import { LABELS } from "../model/annotations.ts";
import { type Labels, type LabelSelector, matchesSelector, selectorText } from "../model/label-selector.ts";
import type { Zone } from "../model/zone.ts";

/** A list that finds the pods of these zones, and possibly others. */
interface SharedList {
  readonly labelSelector: string;
  readonly zones: readonly Zone[];
  /** The zone whose controller has this UID, if the zone's own selector matches the labels. */
  readonly zoneOf: (uid: string | undefined, labels: Labels) => Zone | undefined;
  /** True if it finds each pod that has the label of the group. */
  readonly findsGroup: boolean;
}

/** Characters of a selector, so that its URL stays below the 8 kB that proxies accept. */
const MAX_CHARACTERS = 3000;

/** Zones that one selector finds. */
interface Part {
  readonly selector: LabelSelector;
  readonly zones: readonly Zone[];
  /** Set if it selects by the label of the group alone. */
  readonly isOfGroup?: boolean;
}

/**
 * Plans the lists for zones of one group, with `MAX_CHARACTERS` of selector each unless one zone alone needs more.
 * Zones share lists if their selectors name the same labels, and no expressions; any other has a list of its own.
 */
export function planLists(zones: readonly Zone[]): SharedList[] {
  const alike = Map.groupBy(partsOf(zones), ({ selector, zones: [first] }) => {
    const labels = labelsOf(selector);
    return labels ? Object.keys(labels).toSorted().join() : `${first?.uid}`;
  });
  return [...alike.values()].flatMap((same) => splitByLength(same).map(listOf));
}

/**
 * The label of the group alone finds all pods of those zones that select by it, and those that a StatefulSet has left
 * behind. If only templates have the label, that takes a list more.
 */
function partsOf(zones: readonly Zone[]): Part[] {
  const [group = ""] = zones.map((zone) => zone.group);
  const isBound = ({ selector }: Zone): boolean => selector.matchLabels?.[LABELS.rolloutGroup] === group;
  const bound = zones.filter(isBound);
  const isLabelled = bound.length > 0 || zones.some(({ podLabels }) => podLabels[LABELS.rolloutGroup] === group);
  const others = zones.filter((zone) => !isBound(zone)).map((zone) => ({ selector: zone.selector, zones: [zone] }));
  const ofGroup = { selector: { matchLabels: { [LABELS.rolloutGroup]: group } }, zones: bound, isOfGroup: true };
  return isLabelled && group !== "" ? [ofGroup, ...others] : others;
}

/** The labels of a selector that has labels alone, none of them empty; undefined for any other. */
function labelsOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector): Labels | undefined {
  const values = Object.values(matchLabels);
  return matchExpressions.length === 0 && values.length > 0 && !values.includes("") ? matchLabels : undefined;
}

function splitByLength(parts: readonly Part[]): Part[][] {
  const lists: Part[][] = [];
  let left = 0;
  for (const part of parts) {
    const { length } = selectorText(part.selector);
    left -= length;
    if (left < 0 || lists.length === 0) {
      lists.push([]);
      left = MAX_CHARACTERS - length;
    }
    lists.at(-1)?.push(part);
  }
  return lists;
}

function listOf(parts: readonly Part[]): SharedList {
  const zones = parts.flatMap((part) => part.zones);
  const owners = new Map(zones.map((zone) => [zone.uid, zone]));
  return {
    labelSelector: joinSelectors(parts.map(({ selector }) => selector)),
    zones,
    findsGroup: parts.some(({ isOfGroup }) => isOfGroup),
    zoneOf(uid, labels) {
      const zone = owners.get(uid ?? "");
      return zone && matchesSelector(zone.selector, labels) ? zone : undefined;
    },
  };
}

/** Selects all that these selectors do: each label has a value that it has in one of them. */
function joinSelectors(selectors: readonly LabelSelector[]): string {
  const [only = {}, ...more] = selectors;
  if (more.length === 0) return selectorText(only);
  const values = new Map<string, Set<string>>();
  for (const selector of selectors)
    for (const [key, value] of Object.entries(labelsOf(selector) ?? {}))
      values.set(key, (values.get(key) ?? new Set()).add(value));
  const terms = [...values].map(([key, all]) => {
    const list = [...all].join();
    return all.size === 1 ? `${key}=${list}` : `${key} in (${list})`;
  });
  return terms.join();
}
