/** Builds the entry points once for all processes of a run. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bundle, ENTRIES, LAZY } from "../../infra/build.ts";
import { BUILT } from "../entries.ts";
import { ROOT } from "./files.ts";

/** Where packages that are not in the bundles are found. */
const PLACE = join(ROOT, "node_modules/.zonewise-test-");

/**
 * Builds them into a folder of their own, which goes with this process, and names it in the environment of those to
 * come: each by the path of its source.
 */
export async function buildEntries(): Promise<void> {
  const folder = mkdtempSync(PLACE);
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const bySource = Object.fromEntries(Object.values(ENTRIES).map((source) => [source.replace(/\.ts$/, ""), source]));
  await bundle({ ...bySource, ...LAZY }, ROOT, folder);
  process.env[BUILT] = folder;
}
