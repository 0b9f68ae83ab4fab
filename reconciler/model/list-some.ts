/** The most items that a message names. */
export const MOST_NAMED = 10;

/** The first items, and how many more there are: a message stays short, however large the group is that it is about. */
export function listSome(items: readonly string[], separator = ", "): string {
  const more = items.length - MOST_NAMED;
  return more > 0 ? `${items.slice(0, MOST_NAMED).join(separator)} and ${more} more` : items.join(separator);
}
