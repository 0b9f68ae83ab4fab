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

/** The names that a typo may have turned into the wrong one, the nearest first; none for "". */
export function findNear(wrong: string, names: readonly string[]): string[] {
  const most = Math.max(2, wrong.length / 3);
  return names
    .map((name) => ({ name, edits: countEdits(wrong, name) }))
    .filter(({ name, edits }) => edits <= most && edits < Math.min(wrong.length, name.length))
    .toSorted((a, b) => a.edits - b.edits)
    .map(({ name }) => name);
}
