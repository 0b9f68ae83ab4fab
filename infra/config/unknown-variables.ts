/** Variables that nobody reads, though their names say that they are meant for us: a typing error must not go unnoticed. */
import type { Log } from "../log.ts";
import { isServiceLink } from "./service-links.ts";
import { VARIABLE_ROWS } from "./variables.ts";

/** Nobody else's variables begin like this: an unknown one is refused. */
const OWN_PREFIXES = [
  "SERVER_TLS_",
  "SERVER_CLUSTER_VALIDATION_",
  "KUBERNETES_CLIENT_",
  "PODS_CLIENT_",
  "RECONCILE_",
  "USE_ZONE_TRACKER",
  "WEBHOOKS_UPDATE_",
  "ZONE_TRACKER_",
  "ZPDB_",
];

const NAMES = VARIABLE_ROWS.map(([name]) => name);
const KNOWN = new Set(VARIABLE_ROWS.flatMap(([name, { oldName = name }]) => [name, oldName]));

/** The names among these that begin as only ours and the original's do and are neither, each with the known name that is nearest, if one begins like it. */
export function findUnknown(names: readonly string[]): { readonly name: string; readonly nearest: string | undefined }[] {
  return names.flatMap((name) => {
    const prefix = KNOWN.has(name) ? undefined : OWN_PREFIXES.find((prefix) => name.startsWith(prefix));
    if (prefix === undefined) return [];
    const alike = NAMES.filter((known) => known.startsWith(prefix));
    const [nearest] = alike.toSorted((one, other) => countEdits(name, one) - countEdits(name, other));
    return [{ name, nearest }];
  });
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The names that are set, not known and not refused, but begin with the first word of one of ours and differ from it by one or two letters. */
export function findMisspelt(env: Environment): { readonly name: string; readonly nearest: string }[] {
  const others = Object.keys(env).filter((name) => env[name] && !KNOWN.has(name) && !isServiceLink(name, env));
  return others.flatMap((name) => {
    const nearest = NAMES.find((known) => firstWord(known) === firstWord(name) && countEdits(name, known) <= 2);
    return nearest === undefined || findUnknown([name]).length > 0 ? [] : [{ name, nearest }];
  });
}

/** Says in one line which variables may have been meant for us, if any. */
export function warnOfMisspelt(env: Environment, log: Log): void {
  const variables = findMisspelt(env);
  if (variables.length > 0) log.warn("a variable is not known, and its name is nearly one that is: it has no effect here", { variables });
}

const firstWord = (name: string): string | undefined => name.split("_")[0];

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
