/** The insertions, deletions and substitutions from one word to the other (Levenshtein distance). */
export function countEdits(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [i, from] of one.split("").entries()) {
    const above = row;
    row = [i + 1];
    for (const [j, to] of other.split("").entries()) {
      row.push(Math.min((above[j] ?? 0) + (from === to ? 0 : 1), (above[j + 1] ?? 0) + 1, (row[j] ?? 0) + 1));
    }
  }
  return row[other.length] ?? 0;
}
