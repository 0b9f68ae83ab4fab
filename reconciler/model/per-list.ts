/**
 * Computes something once for each list, as its rules ask for every zone in turn: what is found per group must not cost
 * a pass over the group per zone. Lists are not changed; the result goes with its list.
 */
export function perList<T extends object, R>(compute: (list: T) => R): (list: T) => R {
  const known = new WeakMap<T, { readonly result: R }>();
  return (list) => {
    const found = known.get(list) ?? { result: compute(list) };
    known.set(list, found);
    return found.result;
  };
}
