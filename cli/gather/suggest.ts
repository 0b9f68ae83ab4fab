/** Suggests names that exist in place of one that does not. */
import { findNames } from "../completion.ts";
import { CliError } from "../exit.ts";
import type { Completes, Session } from "../session.ts";

interface Missing {
  readonly what: Completes;
  readonly name: string;
  readonly message: string;
}

/** The error that there is no object of the name, with those that there are; without them if they cannot be listed. */
export async function missing(session: Session, { what, name, message }: Missing): Promise<CliError> {
  const names = await findNames(session, what).catch(() => undefined);
  return new CliError(message, names ? { hint: suggest(name, names, what) } : {});
}

const MOST = 10;

/** `did you mean …?`, or the names that there are. `what` is their plural. */
export function suggest(wrong: string, names: readonly string[], what: string): string {
  if (names.length === 0) return `there are no ${what} there`;
  const near = names.filter((name) => distance(wrong, name) <= Math.max(2, wrong.length / 3) || name.includes(wrong));
  if (near.length > 0) return `did you mean ${near.slice(0, MOST).join(", ")}?`;
  const more = names.length > MOST ? ` and ${names.length - MOST} more` : "";
  return `there are: ${names.slice(0, MOST).join(", ")}${more}`;
}

/** Insertions, deletions and substitutions from one to the other (Levenshtein). */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 0; i < one.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j++) {
      const substitute = (row[j] ?? 0) + (one[i] === other[j] ? 0 : 1);
      next.push(Math.min(substitute, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
