import assert from "node:assert/strict";
import { it } from "node:test";
import { startDifferences } from "./differences.ts";

it("a bug differs in the calls in which it would have another value, and in no others", async () => {
  const file = "test/simulation/planted/catches.ts";
  const [ends, throws, changesNothing] = [0, 1, 2];
  const differences = startDifferences([
    { file, find: "left > 0; left--", replacement: "left > 1; left--" },
    { file, find: "left-- > 0", replacement: "left-- > 2" },
    { file, find: "times; left > 0", replacement: "times + 0; left > 0" },
  ]);
  const { save, parse } = await import("./catches.ts");

  assert.deepEqual(parse("1"), 1);
  assert.deepEqual(differences.take(), { ran: new Set(), differed: new Set() });
  assert.equal(await save(0), "saved");
  // What writes is not evaluated twice: it counts wherever it runs.
  assert.deepEqual(differences.take(), { ran: new Set([ends, throws, changesNothing]), differed: new Set([throws]) });
  assert.equal(await save(2), "saved", "the history stays as it was");
  assert.deepEqual(differences.take().differed, new Set([ends, throws]));
});
