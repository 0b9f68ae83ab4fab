/** What is recorded of budgets that protect nothing, or whose webhook refuses every eviction. Pure. */

/** Budgets of one namespace for the same reason. */
export interface Unprotected {
  readonly namespace: string;
  readonly budgets: readonly string[];
  readonly reason: string;
  readonly message: string;
}

/** The value with the field `unprotected` in each object of a namespace with such budgets. */
export function addUnprotected(value: object, unprotected: readonly Unprotected[]): object {
  if (Array.isArray(value)) return value.map((one: object) => addUnprotected(one, unprotected));
  const own = unprotected.filter((one) => "namespace" in value && value.namespace === one.namespace);
  return own.length > 0 ? { ...value, unprotected: own } : value;
}
