/** The differences between two recordings, by step and field. */
import type { Recording } from "./suite.ts";

export interface Difference {
  readonly scenario: string;
  readonly step: string;
  /** The field's path, "" for the whole entry. */
  readonly field: string;
  readonly expected: unknown;
  readonly actual: unknown;
}

export function compare(expected: Recording, actual: Recording): Difference[] {
  return Object.keys({ ...expected, ...actual }).flatMap((scenario) => {
    const [entries, others] = [expected[scenario] ?? [], actual[scenario] ?? []];
    return Array.from({ length: Math.max(entries.length, others.length) }, (_, index) => {
      const [left, right] = [entries[index], others[index]];
      return differences({ scenario, step: left?.step ?? right?.step ?? "" }, left, right, "");
    }).flat();
  });
}

/** Formats one difference in three lines. */
export function describe({ scenario, step, field, expected, actual }: Difference): string {
  return `${scenario} / ${step}${field && ` / ${field}`}\n    expected ${JSON.stringify(expected)}\n    actual   ${JSON.stringify(actual)}`;
}

function differences(
  where: Pick<Difference, "scenario" | "step">,
  expected: unknown,
  actual: unknown,
  field: string,
): Difference[] {
  if (expected === actual) return [];
  if (!isTree(expected) || !isTree(actual) || Array.isArray(expected) !== Array.isArray(actual))
    return [{ ...where, field, expected, actual }];
  const keys = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  return [...keys].flatMap((key) => differences(where, expected[key], actual[key], field ? `${field}.${key}` : key));
}

function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
