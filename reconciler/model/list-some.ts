/** The most items that a message names. */
export const MAX_NAMED = 10;

/** The first items, and the number of the others: a message stays short, however large its group is. */
export function listSome(items: readonly string[], separator = ", ", most = MAX_NAMED): string {
  const more = items.length - most;
  return more > 0 ? `${items.slice(0, most).join(separator)} and ${more} more` : items.join(separator);
}
