/**
 * How much text is kept of the labels of an object. Kubernetes bounds each label, and not all of them: one tenant could
 * fill the memory of a process that keeps those of every zone and pod.
 */
import { LABELS } from "./annotations.ts";
import type { Labels } from "./label-selector.ts";

/** Characters of a pod's labels; and of the labels, the selector, the images and the Service of a StatefulSet together. */
export const MAX_TEXT = 16 * 1024;

export const lengthOf = (labels: Labels): number =>
  Object.entries(labels).reduce((sum, [key, value]) => sum + key.length + value.length, 0);

/** What is kept of labels that are too long: those that Zonewise reads. */
export function pickOurs(labels: Labels): Labels {
  const own = Object.values(LABELS).filter((key) => Object.hasOwn(labels, key));
  return Object.fromEntries(own.map((key) => [key, labels[key] ?? ""]));
}
