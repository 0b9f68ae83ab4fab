/** Namespaces in which no webhook asks the budgets, or it refuses every eviction. Pure. */

/** One namespace, for one reason. */
export interface Unprotected {
  readonly namespace: string;
  /** Of the namespace; none if it has none. */
  readonly budgets: readonly string[];
  readonly reason: string;
  readonly message: string;
  /** It was not seen, but is recorded of these budgets. */
  readonly isRecorded?: true;
}

/** The value with the field `unprotected` in each object of such a namespace. */
export function addUnprotected(value: object, unprotected: readonly Unprotected[]): object {
  if (Array.isArray(value)) return value.map((one: object) => addUnprotected(one, unprotected));
  const own = unprotected.filter((one) => "namespace" in value && value.namespace === one.namespace);
  return own.length > 0 ? { ...value, unprotected: own } : value;
}
