#!/usr/bin/env node
/**
 * `npm run mutate [words]`: applies each mutation of the table (those whose sentence has all the words) to a copy of
 * the tree and runs tests. Exits with 0 if every mutation is killed, with 1 otherwise, and with 2 if no sentence has
 * all the words. A workflow runs it every night.
 *
 * StrykerJS generates thousands of mutants, runs node:test only through TAP with all tests of each file, and needs
 * minutes of emulator tests for each: hours on two cores, most of them about lines that no safety rule depends on. The
 * table names the lines that count.
 */
import { join } from "node:path";
import { visitEach } from "../../infra/slots.ts";
import { findFailure, judge } from "./judge.ts";
import { MUTATIONS } from "./table.ts";
import { copyTree } from "./tree.ts";

const AT_ONCE = 2;

const words = process.argv.slice(2);
const chosen = MUTATIONS.filter(({ breaks }) => words.every((word) => breaks.includes(word)));
if (chosen.length === 0) {
  console.error(`no mutation breaks a rule with all of these words: ${words.join(" ")}`);
  process.exit(2);
}
const trees = await Promise.all(Array.from({ length: AT_ONCE }, () => copyTree(join(import.meta.dirname, "../.."))));
let alive = 0;
try {
  const failure = await findFailure(trees[0]?.path ?? "", [...new Set(chosen.flatMap(({ tests }) => tests))]);
  if (failure !== undefined) throw new Error(`a test fails without any mutation: ${failure}`);
  const free = [...trees];
  await visitEach(chosen, { atOnce: AT_ONCE }, async (mutation) => {
    const tree = free.pop();
    if (!tree) throw new Error("no tree is free");
    const result = await judge(tree.path, mutation);
    free.push(tree);
    if (result.state !== "killed") alive++;
    const detail =
      result.state === "killed" ? ` (${result.by})` : result.state === "invalid" ? ` (${result.message})` : "";
    console.log(`${result.state.padEnd(9)}  ${mutation.file}: ${mutation.breaks}${detail}`);
  });
} finally {
  for (const tree of trees) await tree.remove();
}
console.log(`${chosen.length} mutations, ${alive} not killed`);
process.exitCode = alive === 0 ? 0 : 1;
