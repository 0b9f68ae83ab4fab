/** Reads that may fail in part: the read errors are reported beside the results. */
import { hasCode, messageOf } from "../errors.ts";
import type { Page } from "./cluster.ts";

/** The items of all pages; rejects as the list does. */
export const collect = <T>(pages: AsyncGenerator<Page<T>>): Promise<T[]> => collectRead(pages, (object) => object);

/** What `read` makes of the items of all pages; nothing else of them remains in memory. Rejects as the list does. */
export async function collectRead<O, T>(pages: AsyncGenerator<Page<O>>, read: (object: O) => T): Promise<T[]> {
  const items: T[] = [];
  for await (const page of pages) for (const object of page.items) items.push(read(object));
  return items;
}

/** A clause that says that `what` could not be read. */
export const describeUnread = (what: string, error: unknown): string =>
  `${what} ${hasCode(error, "Forbidden") ? "may not be read" : `cannot be read: ${messageOf(error)}`}`;

/** Adds a clause to `unread` that says that `what` could not be read; for `catch`. */
export const noteUnread =
  (unread: string[], what: string) =>
  (error: unknown): undefined =>
    void unread.push(describeUnread(what, error));

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
