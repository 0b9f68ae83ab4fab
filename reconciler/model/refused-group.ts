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
export const refusedGroup: GroupRule = firstOf([groupNamed, withinBounds]);

/**
 * Zones are availability zones, of which there are few. Up to so many, every rule may look at all zones for each of them,
 * and nothing is remembered from one zone to the next.
 */
export const MAX_ZONES = 32;

interface Excess {
  readonly reason: "TooManyZones" | "LabelsTooLong";
  readonly message: string;
  /** The zone that has too much text. */
  readonly zone?: Zone;
}

/** Why nothing is disrupted in the group of this zone, if it is one of too many, or if one of them has too much text. */
export function findExcess(zone: Zone, zones: readonly Zone[]): Excess | undefined {
  const { group } = zone;
  const own = group === "" ? [zone] : zones.filter((other) => other.group === group);
  if (own.length > MAX_ZONES)
    return { reason: "TooManyZones", message: `group ${group} has ${own.length} zones, more than ${MAX_ZONES}` };
  const long = [zone, ...own].find(({ textProblem }) => textProblem !== undefined);
  return long && { reason: "LabelsTooLong", message: `${long.name}: ${long.textProblem}`, zone: long };
}

/** The hold of a group beyond these bounds. */
function withinBounds({ zones }: { readonly zones: readonly Zone[] }): Hold | undefined {
  const [first] = zones;
  const excess = first && findExcess(first, zones);
  if (!excess) return undefined;
  const { reason, message, zone } = excess;
  const what = zone ? "its group" : "it";
  return { ...hold(reason, `${message}: ${what} is neither rolled out nor scaled`, [zone ?? first]), dedupKey: "" };
}
