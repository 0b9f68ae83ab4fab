/** Groups that nobody handles: the reconciler holds them, and the webhooks refuse downscales of their zones. */
import { firstOf, type Rule } from "../../infra/rules.ts";
import { LABELS } from "./annotations.ts";
import { hold, type Hold } from "./decision.ts";
import type { Labels } from "./label-selector.ts";
import type { Zone } from "./zone.ts";

/** True for a StatefulSet with the label `rollout-group` and no value: a group without a name is none (§0.2). */
export const hasEmptyGroup = (labels: Labels | undefined): boolean => labels?.[LABELS.rolloutGroup] === "";

export const EMPTY_GROUP = `its label ${LABELS.rolloutGroup} is empty: give it the name of its group, or remove it`;

type GroupRule = Rule<[group: { readonly zones: readonly Zone[] }], Hold>;

const groupNamed: GroupRule = ({ zones }) => {
  const unnamed = zones.filter(({ labels }) => hasEmptyGroup(labels));
  const [first] = unnamed;
  return first && { ...hold("GroupNameEmpty", `${first.name}: ${EMPTY_GROUP}`, unnamed), dedupKey: "" };
};

/** The hold of a group that is neither rolled out nor scaled. */
export const refusedGroup: GroupRule = firstOf([groupNamed, tooManyZones]);

/**
 * Zones are availability zones, of which there are few. Up to so many, every rule may look at all zones for each of them,
 * and nothing is remembered from one zone to the next.
 */
export const MAX_ZONES = 32;

/** Why nothing is disrupted in the group of this zone, if too many of these are zones of it. */
export function describeTooMany(zone: Pick<Zone, "group">, zones: readonly Pick<Zone, "group">[]): string | undefined {
  const { group } = zone;
  const count = group === "" ? 0 : zones.filter((other) => other.group === group).length;
  return count > MAX_ZONES ? `group ${group} has ${count} zones, more than ${MAX_ZONES}` : undefined;
}

/** The hold of a group that is larger. */
export function tooManyZones({ zones }: { readonly zones: readonly Zone[] }): Hold | undefined {
  const [first] = zones;
  const why = first && describeTooMany(first, zones);
  if (why === undefined) return undefined;
  return { ...hold("TooManyZones", `${why}: it is neither rolled out nor scaled`, zones.slice(0, 1)), dedupKey: "" };
}
