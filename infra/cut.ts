/**
 * The first `most` characters of a text, in memory of their own. A `slice` is kept as a reference into the whole text: a
 * cut value that is remembered would keep the 256 KiB that a user of the cluster may write.
 */
export const cut = (text: string, most: number): string =>
  text.length <= most ? text : Buffer.from(text.slice(0, most)).toString();

export const MAX_NAMED = 10;

/** The first items, and the number of the others: a message stays short, however large its group is. */
export function listSome(items: readonly string[], separator = ", ", most = MAX_NAMED): string {
  const more = items.length - most;
  return more > 0 ? `${items.slice(0, most).join(separator)} and ${more} more` : items.join(separator);
}
