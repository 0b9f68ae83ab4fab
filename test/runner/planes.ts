/**
 * The two lists of tests on a real cluster that the gate runs at once, each on a control plane of its own.
 *
 *     node test/runner/planes.ts first|second     prints one list as a glob pattern
 */
import { globSync } from "node:fs";
import { ROOT } from "./files.ts";

export type Plane = "first" | "second";

/**
 * They need the real node, which is at the first control plane, and take some 7 minutes: each as long as ten others.
 */
const REAL_NODE = /^test\/cluster\/real-node\//;
const REAL_NODE_WEIGHT = 10;

/** Every file is in one of the lists: each next one in the list that is shorter so far. */
export function listsOf(files: readonly string[]): Readonly<Record<Plane, readonly string[]>> {
  const first = files.filter((file) => REAL_NODE.test(file));
  const second: string[] = [];
  let ahead = first.length * REAL_NODE_WEIGHT;
  for (const file of files.filter((file) => !REAL_NODE.test(file)).toSorted()) {
    (ahead > 0 ? second : first).push(file);
    ahead += ahead > 0 ? -1 : 1;
  }
  return { first, second };
}

if (import.meta.main) {
  const [name] = process.argv.slice(2);
  if (name !== "first" && name !== "second") throw new Error("first or second?");
  console.log(`{${listsOf(globSync("test/cluster/**/*.cluster.ts", { cwd: ROOT }))[name].join(",")}}`);
}
