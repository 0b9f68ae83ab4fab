import assert from "node:assert/strict";
import { it } from "node:test";
import { formatReach, noteCatches } from "./reach.ts";

it("a count of what was reached names each cell, and says how many there are", () => {
  const cells = new Map([
    ["hold GateFailed", 0],
    ["hold BudgetSpent", 300],
    ["fault throttled at reconciler LIST pods", 12],
  ]);
  assert.deepEqual(formatReach({ seeds: 300, cells }).split("\n"), [
    "12\tfault throttled at reconciler LIST pods",
    "300\thold BudgetSpent",
    "never\thold GateFailed",
    "2 of 3 cells were reached by 300 histories",
  ]);
});

it("catch blocks and second attempts say that they run, and change nothing else", () => {
  const source = [
    "export async function save(): Promise<void> {",
    "  try {",
    "    return await retryOnConflict(attempt, { clock });",
    "  } catch (error) {",
    "    throw error;",
    "  }",
    "}",
    "const read = (text: string) => readIt(text).catch(() => undefined);",
    "function list() {",
    "  void a.catch((error: unknown): Result => {",
    "    b.catch((error: unknown) => log(error));",
    "  });",
    "}",
  ].join("\n");
  const listed: string[] = [];
  const noted = noteCatches("x.ts", source, (cell) => void listed.push(cell));
  assert.deepEqual(listed, [
    "retry x.ts save",
    "catch x.ts save",
    "catch x.ts read",
    "catch x.ts list",
    "catch x.ts list 2",
  ]);
  assert.deepEqual(
    noted.split("\n").filter((line, i) => line !== source.split("\n")[i]),
    [
      '    return await retryOnConflict(noteSecond("retry x.ts save", attempt), { clock });',
      '  } catch (error) { noteReached("catch x.ts save");',
      'const read = (text: string) => readIt(text).catch(() => noteReached("catch x.ts read") ?? undefined);',
      '  void a.catch((error: unknown): Result => { noteReached("catch x.ts list");',
      '    b.catch((error: unknown) => noteReached("catch x.ts list 2") ?? log(error));',
    ],
  );
});
