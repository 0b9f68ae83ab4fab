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

/**
 * Reads a table:
 *
 *     # what the rows are about
 *     file reconciler/gates/pass.ts              of the rows below, until the next file
 *     tests reconciler/gates/{rollout,cases}     the same; test/reconciler/gates/rollout.test.ts, and the other
 *     a gate passes only once its soak time is over
 *     - now < soakEnd(gate, stage)               what to find
 *     + now < 0                                  what to put there instead; without this line, nothing
 */
export function readTable(text: string): Mutation[] {
  const rows: { breaks: string; file: string; find: string[]; replacement: string[]; tests: readonly string[] }[] = [];
  let file = "";
  let tests: readonly string[] = [];
  for (const line of text.split("\n")) {
    const [, mark, rest = ""] = /^(#|-|\+|file|tests)(?: (.*))?$/.exec(line) ?? [];
    if (line === "" || mark === "#") continue;
    if (mark === "file") file = rest;
    else if (mark === "tests") tests = rest.split(" ").flatMap(readTests);
    else if (mark === "-") rows.at(-1)?.find.push(rest);
    else if (mark === "+") rows.at(-1)?.replacement.push(rest);
    else rows.push({ breaks: line, file, find: [], replacement: [], tests });
  }
  return rows.map((row) => ({ ...row, find: row.find.join("\n"), replacement: row.replacement.join("\n") }));
}

/** The paths of `reconciler/gates/{rollout,cases}`. */
function readTests(written: string): string[] {
  const [, folder = "", names = written] = /^(.*)\{(.*)\}$/.exec(written) ?? [];
  return names.split(",").map((name) => `test/${folder}${name}.test.ts`);
}

/** The mutated text; undefined unless `find` occurs exactly once. */
export function mutate(
  text: string,
  { find, replacement }: Pick<Mutation, "find" | "replacement">,
): string | undefined {
  const parts = find.split(/\s+/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  const [found, another] = text.matchAll(new RegExp(parts.join(String.raw`\s+`), "g"));
  if (!found || another) return undefined;
  return text.slice(0, found.index) + replacement + text.slice(found.index + found[0].length);
}
