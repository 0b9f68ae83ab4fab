/** Reads of which a part may fail: what could not be read is said beside what was. */
import { hasCode, messageOf } from "../errors.ts";
import type { Page } from "./cluster.ts";

/** The items of all pages; rejects as the list does. */
export async function collect<T>(pages: AsyncGenerator<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  for await (const page of pages) items.push(...page.items);
  return items;
}

/** That `what` could not be read, in a clause. */
export const describeUnread = (what: string, error: unknown): string =>
  `${what} ${hasCode(error, "Forbidden") ? "may not be read" : `cannot be read: ${messageOf(error)}`}`;

/** Adds to `unread` that `what` could not be read; for `catch`. */
export const noteUnread =
  (unread: string[], what: string) =>
  (error: unknown): undefined =>
    void unread.push(describeUnread(what, error));
