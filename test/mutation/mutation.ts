/** A small change of the product that breaks a safety rule: some test has to notice it. */
export interface Mutation {
  /** The rule that it breaks, as a sentence. */
  readonly breaks: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replacement: string;
  /** Test files that should notice it. */
  readonly tests: readonly string[];
}

/** The mutated text; undefined unless `find` occurs exactly once. */
export function mutate(text: string, { find, replacement }: Mutation): string | undefined {
  const at = text.indexOf(find);
  if (at < 0 || text.includes(find, at + 1)) return undefined;
  return text.slice(0, at) + replacement + text.slice(at + find.length);
}
