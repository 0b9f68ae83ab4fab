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

/** The mutated text; undefined unless `find` occurs exactly once. */
export function mutate(text: string, { find, replacement }: Change): string | undefined {
  const parts = find.split(/\s+/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  const [found, another] = text.matchAll(new RegExp(parts.join(String.raw`\s+`), "g"));
  if (!found || another) return undefined;
  return text.slice(0, found.index) + replacement + text.slice(found.index + found[0].length);
}
