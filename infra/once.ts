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
