import assert from "node:assert/strict";
import { it } from "node:test";
import { createScreen } from "../../../cli/output/screen.ts";
import { colourful } from "../../../cli/output/text.ts";
import type { Session, TerminalSize } from "../../../cli/session.ts";

/** What is written for these texts, one after the other. */
function show(texts: readonly string[], output: Session["output"], size?: TerminalSize): string[] {
  const written: string[] = [];
  const io = {
    write: (text: string) => void written.push(text),
    warn: () => {},
    isTty: size !== undefined,
    size: () => size,
    style: colourful,
  };
  const screen = createScreen({ io, output });
  for (const text of texts)
    screen.update({
      table: () => text,
      short: () => text.replaceAll("done\n", ""),
      lines: () => text,
      document: () => `a: ${text}`,
    });
  return written;
}

const LARGE = { columns: 80, rows: 24 };

it("a terminal shows the newest state in place", () =>
  assert.deepEqual(show(["1\n2\n", "3\n", "3\n", "4\n"], "table", LARGE), [
    "1\n2\n",
    "\u001B[2A\u001B[J3\n",
    "\u001B[1A\u001B[J4\n",
  ]));

it("a log gets what has changed", () => assert.deepEqual(show(["1\n", "1\n", "2\n"], "table"), ["1\n", "2\n"]));

it("documents in YAML are separated", () => assert.deepEqual(show(["1\n", "2\n"], "yaml"), ["a: 1\n", "---\na: 2\n"]));
it("documents in JSON follow each other, on a terminal too", () => {
  assert.deepEqual(show(["1\n", "2\n"], "json"), ["a: 1\n", "a: 2\n"]);
  assert.deepEqual(show(["1\n", "2\n"], "json", LARGE), ["a: 1\n", "a: 2\n"]);
});

it("a document is written of nothing, too", () => assert.deepEqual(show(["", ""], "json"), ["a: "]));

it("a low terminal gets what is not done first", () =>
  assert.deepEqual(show(["stalled\ndone\ndone\ndone\n"], "table", { columns: 80, rows: 4 }), ["stalled\n"]));

it("a low terminal gets no more lines than it has, and says how many there are", () =>
  assert.deepEqual(show(["1\n2\n3\n4\n5\n"], "table", { columns: 80, rows: 4 }), [
    "1\n2\n… 3 more lines: --watch=false shows them\n",
  ]));

it("a line that is longer than the terminal is drawn over with all its rows", () => {
  const red = `ab${colourful("bad", "cdef")}gh`;
  assert.deepEqual(show([`${red}\n名前\n`, "1\n"], "table", { columns: 5, rows: 24 }), [
    `${red}\n名前\n`,
    "\u001B[3A\u001B[J1\n",
  ]);
  assert.deepEqual(show(["123456\n2\n3\n4\n"], "table", { columns: 5, rows: 5 }), [
    "123456\n2\n… 2 more lines: --watch=false shows them\n",
  ]);
});
