/**
 * Makes the responses of two clusters comparable: null counts as absent, and values that differ between
 * clusters (UIDs, times, versions, generated names) are replaced by placeholders.
 */

interface Normaliser {
  (value: unknown): unknown;
}

const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\b/g;
const UID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

const VERSION = /(ResourceVersion in (?:the precondition|record)) \(\d+\)/g;

/**
 * Fields that differ between clusters, or are not compared, with their placeholder; undefined omits the
 * field.
 */
const PLACEHOLDERS: Readonly<Record<string, string | undefined>> = {
  resourceVersion: "<version>",
  managedFields: undefined,
  selfLink: undefined,
  continue: "<continue>",
  podIP: "<ip>",
  ip: "<ip>",
  hostIP: "<ip>",
  // Defaults of StatefulSets that are not compared.
  persistentVolumeClaimRetentionPolicy: undefined,
  revisionHistoryLimit: undefined,
};

/** Numbers UIDs in order of appearance. */
function numbered(): (uid: string) => string {
  const uids = new Map<string, string>();
  return (uid) => {
    const known = uids.get(uid) ?? `<uid ${uids.size + 1}>`;
    uids.set(uid, known);
    return known;
  };
}

/**
 * `names` maps texts of this run (its namespace, generated names) to placeholders, `uidName` its UIDs.
 */
export function createNormaliser(names: ReadonlyMap<string, string>, uidName = numbered()): Normaliser {
  const text = (raw: string): string => {
    let result = raw.replace(TIME, "<time>").replace(VERSION, "$1 (<version>)").replace(UID, uidName);
    for (const [name, placeholder] of names) result = result.replaceAll(name, placeholder);
    return result;
  };
  const normalise = (value: unknown): unknown => {
    if (typeof value === "string") return text(value);
    if (Array.isArray(value)) return value.map(normalise);
    if (typeof value !== "object" || value === null) return value ?? null;
    const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(
      entries.flatMap(([key, field]) => {
        if (field === null || field === undefined) return [];
        // The real server validates some fields twice and returns the same cause twice.
        if (key === "causes" && Array.isArray(field)) return [[key, withoutRepeats(field.map(normalise))]];
        if (!(key in PLACEHOLDERS)) return [[text(key), normalise(field)]];
        const placeholder = field === "" ? "" : PLACEHOLDERS[key];
        return placeholder === undefined ? [] : [[key, placeholder]];
      }),
    );
  };
  return normalise;
}

function withoutRepeats(values: readonly unknown[]): unknown[] {
  return values.filter((value, index) => index === 0 || JSON.stringify(value) !== JSON.stringify(values[index - 1]));
}
