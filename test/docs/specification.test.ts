/** The specification has a row for every verdict of a disruption budget. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VERDICTS } from "../../reconciler/budget/verdict.ts";
import { readPage } from "./pages.ts";

const sorted = (names: Iterable<string>): string[] => [...new Set(names)].toSorted();
const code = (name: string): string => `\`${name}\``;

describe("the decisions of disruption budgets, in docs/spec/behaviour.md", () => {
  it("are those of the code, with their codes and the metric's reasons", () => {
    const [, section = ""] = readPage("docs/spec/behaviour.md").split(/\*\*§5\.[12] /);
    const rows = section.split("\n").map((line) => line.slice(2, -2).split(" | "));
    const listed = rows.flatMap((cells) =>
      /^`[\w-]+`$/.test(cells.at(-1) ?? "") ? [`${cells.at(-3)?.slice(0, 3)} ${cells.at(-1)}`] : [],
    );
    assert.deepEqual(
      sorted(listed),
      sorted(Object.values(VERDICTS).map((verdict) => `${verdict.code} ${code(verdict.metric)}`)),
    );
  });
});
