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

/** The same for the keys that were used last, `most` of them. The result of any other is computed again. */
export function onceForLast<Subject, Result>(
  most: number,
  compute: (subject: Subject) => Result,
  keyOf: (subject: Subject) => string,
): (subject: Subject) => Result {
  const known = new Map<string, Result>();
  return (subject) => {
    const key = keyOf(subject);
    const result = known.has(key) ? (known.get(key) as Result) : compute(subject);
    known.delete(key);
    known.set(key, result);
    const [oldest = key] = known.keys();
    if (known.size > most) known.delete(oldest);
    return result;
  };
}
