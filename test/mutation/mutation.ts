/** A small change of the product that breaks a safety rule: some test has to notice it. */
export interface Mutation {
  /** The rule that it breaks, as a sentence. */
  readonly breaks: string;
  readonly file: string;
  /** Occurs exactly once in the file; a space stands for any white space, so that a formatter may break the line. */
  readonly find: string;
  readonly replacement: string;
  /** Test files that should notice it. */
  readonly tests: readonly string[];
}

type Change = Pick<Mutation, "find" | "replacement">;

/** Where the text is that is to be changed; undefined unless it occurs exactly once. */
export function locate(text: string, { find }: Pick<Change, "find">): RegExpExecArray | undefined {
  const parts = find.split(/\s+/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  const [found, another] = text.matchAll(new RegExp(parts.join(String.raw`\s+`), "g"));
  return another ? undefined : found;
}

/** The mutated text; undefined unless `find` occurs exactly once. */
export function mutate(text: string, change: Change): string | undefined {
  const found = locate(text, change);
  return found && text.slice(0, found.index) + change.replacement + text.slice(found.index + found[0].length);
}
