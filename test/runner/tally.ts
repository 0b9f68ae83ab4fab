/**
 * What became of each test and file. A file whose suite did not end is a failure: its process ended too soon, with
 * whatever code.
 */

/** Of node:test's events `test:pass` and `test:fail`. */
interface Result {
  readonly name: string;
  readonly nesting: number;
  readonly file?: string | undefined;
  readonly skip?: string | boolean | undefined;
  readonly todo?: string | boolean | undefined;
  readonly details: { readonly type?: string | undefined };
}

interface Tally {
  readonly note: (kind: "pass" | "fail", result: Result) => void;
  /** The files whose suite has not ended. */
  readonly unfinished: () => string[];
  readonly hasPassed: () => boolean;
  /** One sentence. */
  readonly summary: () => string;
}

/** `files`: each is the name of a suite at the top. */
export function createTally(files: readonly string[]): Tally {
  const ended = new Set<string>();
  const counts = { pass: 0, fail: 0, skip: 0 };
  let hasFailed = false;
  const unfinished = (): string[] => files.filter((file) => !ended.has(file));
  return {
    unfinished,
    hasPassed: () => files.length > 0 && !hasFailed && unfinished().length === 0,
    note(kind, { name, nesting, file, skip, todo, details }) {
      // A failing `todo` fails nothing, as for node:test.
      if (kind === "fail" && !todo) hasFailed = true;
      if (details.type === "suite") {
        if (nesting === 0) ended.add(name);
      } else if (name !== file) counts[kind === "pass" && (skip || todo) ? "skip" : kind]++; // node:test names a process without tests so
    },
    summary() {
      const lost = unfinished();
      const tests = `${counts.pass} tests passed, ${counts.fail} failed, ${counts.skip} were skipped`;
      return lost.length === 0
        ? `${tests}; all ${files.length} files ran to their end`
        : `${tests}; ${lost.length} of ${files.length} files did not run to their end`;
    },
  };
}
