/** Groups that nobody handles: the reconciler holds them, and the webhooks refuse downscales of their zones. */
import { firstOf, type Rule } from "../../infra/rules.ts";
import { LABELS } from "./annotations.ts";
import { hold, type Hold } from "./decision.ts";
import { tooManyZones } from "./too-many-zones.ts";
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
