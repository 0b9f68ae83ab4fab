/** Bounds the series of a metric with label values that users or callers choose. */

/** The label value for everything beyond the bound. */
export const OTHER = "other";

const MAX_VALUE_LENGTH = 200;

/**
 * Returns the label set to record: the first `most` sets unchanged; for any further set, and for one with a value of
 * more than 200 characters, every label is `other`. So a metric has at most `most + 1` series.
 */
export function limitSeries(
  most: number,
): <Labels extends Readonly<Record<string, string>>>(labels: Labels) => Readonly<Record<keyof Labels, string>> {
  const known = new Set<string>();
  return (labels) => {
    const values = Object.values(labels);
    const key = JSON.stringify(values);
    if (known.has(key)) return labels;
    if (known.size === most || values.some(({ length }) => length > MAX_VALUE_LENGTH))
      return Object.fromEntries(Object.keys(labels).map((label) => [label, OTHER])) as Record<
        keyof typeof labels,
        string
      >;
    known.add(key);
    return labels;
  };
}
