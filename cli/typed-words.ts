/** What somebody has typed of a command line, for completions. It may be incomplete or wrong. Pure. */
import type { ConnectionFlags } from "./connect.ts";
import type { Flag } from "./session.ts";

export interface TypedWords {
  /** The words that are no flags, before the last word. */
  readonly operands: readonly string[];
  readonly flags: ConnectionFlags;
  /** What is to be completed, without `before`. */
  readonly last: string;
  /** Stands before each completion: `--output=`. */
  readonly before: string;
  /** The flag whose value is to be completed. */
  readonly valueOf: Flag | undefined;
}

/** The long and short names of a flag. */
export const namesOf = ({ flag }: Flag): string[] => flag.match(/--?[a-z-]+/gi) ?? [];

const takesValue = ({ flag }: Flag): boolean => flag.includes("<");

/** The fields of ConnectionFlags, by the flag's long name. */
const FIELDS: Readonly<Record<string, keyof ConnectionFlags>> = {
  "--namespace": "namespace",
  "--context": "context",
  "--kubeconfig": "kubeconfig",
  "--as": "as",
  "--as-group": "asGroup",
};

/** `flags` are those of every command. */
export function readTyped(words: readonly string[], flags: readonly Flag[]): TypedWords {
  const find = (name: string): Flag | undefined => flags.find((flag) => takesValue(flag) && namesOf(flag).includes(name));
  const operands: string[] = [];
  const connection: Record<string, unknown> = {};
  let open: Flag | undefined;
  for (const word of words.slice(0, -1).flatMap(splitValue)) {
    if (open) set(connection, open, word);
    else if (ALL.has(word)) connection["allNamespaces"] = true;
    else if (!word.startsWith("-")) operands.push(word);
    open = open ? undefined : find(word);
  }
  const { name, ...end } = readLast(words.at(-1));
  return { operands, flags: connection, valueOf: open ?? find(name), ...end };
}

function readLast(word = ""): Pick<TypedWords, "last" | "before"> & { readonly name: string } {
  const [start, name = "", value = ""] = VALUE.exec(word) ?? [];
  if (start === undefined) return { name, last: word === "=" ? "" : word, before: "" };
  return { name, last: value, before: `${name}=` };
}

const VALUE = /^(--[a-z-]+)=(.*)$/;
const ALL: ReadonlySet<string> = new Set(["-A", "--all-namespaces"]);

/** Bash makes a word of the sign. A flag without a value, such as `--watch=false`, is no operand. */
function splitValue(word: string): string[] {
  const [, name = "", value = ""] = VALUE.exec(word) ?? [];
  if (name === "") return word === "=" ? [] : [word];
  return FIELDS[name] === undefined ? [] : [name, value];
}

function set(connection: Record<string, unknown>, flag: Flag, value: string): void {
  const field = FIELDS[namesOf(flag).at(-1) ?? ""];
  if (field === undefined) return;
  connection[field] = field === "asGroup" ? [value] : value;
}
