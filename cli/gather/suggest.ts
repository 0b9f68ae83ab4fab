/** Suggests names that exist in place of one that does not. */
import { countEdits } from "../../infra/edit-distance.ts";
import { listSome, MAX_NAMED } from "../../reconciler/model/list-some.ts";
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

/** `did you mean …?`, or the names that there are. `what` is their plural. */
export function suggest(wrong: string, names: readonly string[], what: string): string {
  if (names.length === 0) return `there are no ${what} there`;
  const near = names.filter((name) => countEdits(wrong, name) <= Math.max(2, wrong.length / 3) || name.includes(wrong));
  if (near.length > 0) return `did you mean ${near.slice(0, MAX_NAMED).join(", ")}?`;
  return `there are: ${listSome(names)}`;
}
