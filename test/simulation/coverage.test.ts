import assert from "node:assert/strict";
import { it } from "node:test";
import { startCoverage } from "./coverage.ts";

const FILE = "test/simulation/planted/catches.ts";

it("catch blocks and second attempts are counted where they run, and only then", async () => {
  const coverage = startCoverage([FILE]);
  const { parse, readTwice, save } = await import("./planted/catches.ts");
  const ran = (): string[] => [...coverage.take()].map((cell) => cell.replace(` ${FILE}`, "")).toSorted();

  assert.equal(await save(0), "saved");
  assert.deepEqual(ran(), []);
  assert.deepEqual([...coverage.known()].map((cell) => cell.replace(` ${FILE}`, "")).toSorted(), [
    "catch parse",
    "catch readTwice.first",
    "catch retryOnConflict",
    "catch save",
    "retry save",
  ]);
  assert.equal(await save(1), "saved");
  assert.deepEqual(ran(), ["catch retryOnConflict", "retry save"]);
  assert.deepEqual(parse("{}"), {});
  assert.deepEqual(ran(), []);
  assert.ok(parse("{") instanceof Error);
  assert.deepEqual(ran(), ["catch parse"]);
  readTwice(["{"]);
  assert.deepEqual(ran(), ["catch readTwice.first"]);
});
