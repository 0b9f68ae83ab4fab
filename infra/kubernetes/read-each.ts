/** Reads one namespace after the other. */

interface ReadEach<T> {
  /** In the order of the namespaces that could be read. */
  readonly results: readonly T[];
  /** By namespace why it could not be read. */
  readonly failures: ReadonlyMap<string, unknown>;
}

/**
 * A namespace that cannot be read, such as one that is gone with its RoleBinding, does not hold up the others (§1.1). If
 * none can be read, rejects with the error of the first; at once with one that `isForAll`.
 */
export async function readEach<T>(
  namespaces: readonly string[],
  read: (namespace: string) => Promise<T>,
  isForAll: (error: unknown) => boolean = () => false,
): Promise<ReadEach<T>> {
  const results: T[] = [];
  const failures = new Map<string, unknown>();
  for (const namespace of namespaces)
    try {
      results.push(await read(namespace));
    } catch (error) {
      if (isForAll(error)) throw error;
      failures.set(namespace, error);
    }
  if (results.length === 0 && failures.size > 0) throw failures.values().next().value;
  return { results, failures };
}
