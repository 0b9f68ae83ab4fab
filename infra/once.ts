/**
 * Computes a result once for each key. A promise that is rejected stays, like any other result, until its key is
 * removed from `known`.
 */
export function once<Subject = void, Result = unknown>(
  compute: (subject: Subject) => Result,
  keyOf: (subject: Subject) => string = String,
  known = new Map<string, Result>(),
): (subject: Subject) => Result {
  return (subject) => {
    const key = keyOf(subject);
    if (!known.has(key)) known.set(key, compute(subject));
    return known.get(key) as Result;
  };
}

/**
 * Computes a result once for each list: rules ask for every zone in turn, and a result per group must not cost a pass
 * over the group per zone. Lists are not changed; the result is collected together with its list.
 */
export function perList<T extends object, R>(compute: (list: T) => R): (list: T) => R {
  const known = new WeakMap<T, { readonly result: R }>();
  return (list) => {
    const found = known.get(list) ?? { result: compute(list) };
    known.set(list, found);
    return found.result;
  };
}
