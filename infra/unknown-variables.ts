/** Variables that nobody reads, though their names say that they are meant for us: a typing error must not go unnoticed. */
import { VARIABLE_ROWS } from "./variables.ts";

/** First words that other programs use as well: variables that begin with one of these are ours only if the second word is, too. */
const COMMON_WORDS = new Set(["KUBERNETES", "LOG", "POD", "REQUEST", "SERVER", "TLS", "USE", "ZONE"]);

/** Of the original's flags that have no variable here, see docs/flags.md. */
const ORIGINALS = ["SERVER_CLUSTER_VALIDATION_HTTP_ENABLED"];

const KNOWN = new Set(VARIABLE_ROWS.flatMap(([name, { oldName = name }]) => [name, oldName]));
const PREFIXES = new Set([...KNOWN, ...ORIGINALS].flatMap(readPrefix));

/** `SERVER_TLS_` of SERVER_TLS_PORT, `LEASE_` of LEASE_NAME; none of SERVER_PORT, as too little of it is ours. */
function readPrefix(name: string): string[] {
  const words = name.split("_");
  const length = COMMON_WORDS.has(words[0] ?? "") ? 2 : 1;
  return words.length > length ? [`${words.slice(0, length).join("_")}_`] : [];
}

/** The names among these that begin like ours or the original's and are neither, each with the known name that is nearest, if one begins like it. */
export function findUnknown(names: readonly string[]): { readonly name: string; readonly nearest: string | undefined }[] {
  return names.flatMap((name) => {
    const prefix = KNOWN.has(name) ? undefined : [...PREFIXES].find((prefix) => name.startsWith(prefix));
    if (prefix === undefined) return [];
    const alike = VARIABLE_ROWS.map(([known]) => known).filter((known) => known.startsWith(prefix));
    const [nearest] = alike.toSorted((one, other) => countEdits(name, one) - countEdits(name, other));
    return [{ name, nearest }];
  });
}

/** Characters to insert, delete or replace until one text is the other (Levenshtein). */
function countEdits(one: string, other: string): number {
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
