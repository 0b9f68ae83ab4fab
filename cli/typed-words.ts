/** The typed part of a command line, for completions. It may be incomplete or wrong. Pure. */
import { Command as Parser, Option } from "commander";
import type { ConnectionFlags } from "./connect.ts";
import { collectFlag } from "./flags.ts";
import type { Flag } from "./session.ts";

export interface TypedWords {
  /** The words that are no flags, before the last word. */
  readonly operands: readonly string[];
  readonly flags: ConnectionFlags;
  /** The text to complete, without `before`. */
  readonly last: string;
  /** Stands before each completion: `--output=`. */
  readonly before: string;
  /** The flag whose value is to be completed. */
  readonly valueOf: Flag | undefined;
}

/** `flags` are those of every command. */
export function readTyped(words: readonly string[], flags: readonly Flag[]): TypedWords {
  const find = (name: string): Flag | undefined => flags.find(({ flag }) => takesValue(flag, name));
  // Bash makes `=` a word of its own.
  const whole = words.slice(0, -1).filter((word) => word !== "=");
  const open = find(whole.at(-1) ?? "");
  const parser = createParser(flags);
  const { operands, unknown } = parser.parseOptions(open ? whole.slice(0, -1) : whole);
  const { name, ...end } = readLast(words.at(-1));
  const mistyped = unknown.filter((word) => !word.startsWith("-"));
  return { operands: [...operands, ...mistyped], flags: parser.opts(), valueOf: open ?? find(name), ...end };
}

function takesValue(flag: string, name: string): boolean {
  const { required, short, long } = new Option(flag);
  return required && (name === short || name === long);
}

/** Commands may share a flag. A wrong or missing value is no error here: only running the command reports it. */
function createParser(flags: readonly Flag[]): Parser {
  const parser = new Parser().helpOption(false);
  const own = [...new Map(flags.map((one) => [one.flag, one])).values()];
  for (const { flag, repeats } of own) {
    const option = new Option(flag.replace(/<(.*)>/, "[$1]"));
    parser.addOption(repeats ? option.argParser(collectFlag) : option);
  }
  return parser;
}

function readLast(word = ""): Pick<TypedWords, "last" | "before"> & { readonly name: string } {
  const [start, name = "", value = ""] = /^(--[a-z-]+)=(.*)$/.exec(word) ?? [];
  if (start === undefined) return { name, last: word === "=" ? "" : word, before: "" };
  return { name, last: value, before: `${name}=` };
}
