/** An object of unknown content, as JSON has it. */
export type Fields = Readonly<Record<string, unknown>>;

/** True for an object, false for null and lists. */
export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The fields of an object; none of anything else. */
export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});
