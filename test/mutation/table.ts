/** The safety lines: each row breaks one, and names the tests that should notice. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readTable, type Mutation } from "./mutation.ts";

const FOLDER = join(import.meta.dirname, "table");

export const MUTATIONS: readonly Mutation[] = readdirSync(FOLDER)
  .toSorted()
  .flatMap((name) => readTable(readFileSync(join(FOLDER, name), "utf8")));
