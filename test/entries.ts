/** The entry points that tests start as processes of their own. */
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

/** The variable of the environment with the folder in which a runner has built them, as the image has them. */
export const BUILT = "ZONEWISE_TEST_BUILT";

/**
 * The file to start for the entry `source`, a path from the root: what was built, which starts in a third of the CPU
 * time, or the source itself where no runner has built it.
 */
export function entryFile(source: string): string {
  const { [BUILT]: folder } = process.env;
  return folder === undefined ? join(ROOT, source) : join(folder, source.replace(/\.ts$/, ".js"));
}
