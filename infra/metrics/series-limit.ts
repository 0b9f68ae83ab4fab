/** Keeps the series of a metric few where others choose the values of its labels. */

/** Stands for every value that is not kept apart. */
export const OTHER = "other";

const LONGEST_VALUE = 200;

/**
 * Resolves label sets to those that are recorded: the first `most` as they are, of any further one each label as `other`, as of one with a
 * value of more than 200 characters. So a metric has `most + 1` series at most.
 */
export function limitSeries(
  most: number,
): <Labels extends Readonly<Record<string, string>>>(labels: Labels) => Readonly<Record<keyof Labels, string>> {
  const known = new Set<string>();
  return (labels) => {
    const values = Object.values(labels);
    const key = JSON.stringify(values);
    if (known.has(key)) return labels;
    if (known.size === most || values.some(({ length }) => length > LONGEST_VALUE))
      return Object.fromEntries(Object.keys(labels).map((label) => [label, OTHER])) as Record<keyof typeof labels, string>;
    known.add(key);
    return labels;
  };
}
