/** JSON values: their fields and their equality. */

/** An object of unknown content, as JSON has it. */
export type Fields = Readonly<Record<string, unknown>>;

/** True for an object, false for null and lists. */
export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The fields of an object; none of anything else. */
export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});

/**
 * The value of a key that the cluster chose; undefined if the record has no such key. Indexing the record would also
 * find what every object inherits: `constructor` is a valid name of a StatefulSet, `toString` one of a label.
 */
export const ownValue = <T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined =>
  record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;

/**
 * True if both JSON values are the same once they are stored: an undefined field is absent, an undefined item of a list
 * is null, and the server may keep fields in another order.
 */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, i) => isSameJson(item ?? null, other[i] ?? null));
  if (!isFields(one) || !isFields(other)) return false;
  const fields = setFields(one);
  return (
    fields.length === setFields(other).length && fields.every((field) => isSameJson(one[field], ownValue(other, field)))
  );
}

const setFields = (value: Fields): readonly string[] => Object.keys(value).filter((key) => value[key] !== undefined);
