/** Findings of `zonewise doctor` about the minimum time between zones as a label, which later versions drop. Pure. */
import { parseGoDuration } from "../../infra/duration.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { describeTwoMinTimes } from "../../reconciler/model/scaling.ts";
import { kubectl } from "../../reconciler/remedies/cures.ts";
import { LABEL_VALUE, type Finding } from "./findings.ts";

const KEY = LABELS.minTimeBetweenZonesDownscale;

/** True if its minimum time is a label, or also a label. */
export const hasOldLabel = ({ metadata }: StatefulSet): boolean => metadata?.labels?.[KEY] !== undefined;

/**
 * Findings of labels that work but should become annotations. Versions of the original before 0.39 read the label
 * alone: if one may serve the namespace, no fix removes the label or makes a time shorter.
 */
export function examineMinTimes(objects: readonly StatefulSet[], mayServe: (namespace: string) => boolean): Finding[] {
  return objects.filter(hasOldLabel).flatMap(({ metadata = {} }): Finding[] => {
    const { labels, annotations, name = "", namespace = "" } = metadata;
    const set: MinTimes = { name, namespace, label: labels?.[KEY] ?? "", annotation: annotations?.[KEY] };
    const fix = mayServe(namespace) ? cureBeside(set) : cureAlone(set);
    const message =
      describeTwoMinTimes(labels, annotations) ??
      `${KEY} is a label; it is read, but is an annotation since rollout-operator 0.39`;
    const object = `statefulset/${name}`;
    return fix === undefined ? [] : [{ level: "warning", check: "old-label", object, message, fix }];
  });
}

interface MinTimes {
  readonly name: string;
  readonly namespace: string;
  readonly label: string;
  readonly annotation: string | undefined;
}

const annotate = (set: MinTimes, value: string): string =>
  kubectl(set, `annotate --overwrite statefulset ${set.name} ${KEY}=${value}`);
const serving = ({ namespace }: MinTimes): string =>
  `rollout-operator before 0.39, which reads the label alone, serves ${namespace}`;

/** Undefined if both exist and are equal: no more can be done yet. */
function cureBeside(set: MinTimes): string | undefined {
  const { name, label, annotation } = set;
  if (annotation === label) return undefined;
  if (annotation === undefined) return `${annotate(set, label)}; the label goes once no ${serving(set)}`;
  const longer = longerOf(label, annotation);
  if (longer === undefined) return kubectl(set, `edit statefulset ${name}`);
  return longer === label
    ? annotate(set, label)
    : kubectl(set, `label --overwrite statefulset ${name} ${KEY}=${longer}`);
}

/** The original may have another name from its chart: so the fix states the condition under which it is valid. */
function cureAlone(set: MinTimes): string {
  const remove = `unless a ${serving(set)}: ${kubectl(set, `label statefulset ${set.name} ${KEY}-`)}`;
  return set.annotation === undefined ? `${annotate(set, set.label)}; then, ${remove}` : remove;
}

/** Undefined if one of them is no duration, or the longer cannot be a label. */
function longerOf(label: string, annotation: string): string | undefined {
  const [one, other] = [parseGoDuration(label), parseGoDuration(annotation)];
  if (one === undefined || other === undefined) return undefined;
  if (one >= other) return label;
  return LABEL_VALUE.test(annotation) ? annotation : undefined;
}
