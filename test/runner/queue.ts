/** A queue of files that several processes share: each takes the next one that no other has taken. */
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";

/** `folder`: empty at first, and the same for all processes; what is taken is noted there. */
export function* takeEach(files: readonly string[], folder: string): Generator<string, void, undefined> {
  for (const file of files) if (take(join(folder, encodeURIComponent(file)))) yield file;
}

/** Creating a file succeeds for one process only. */
function take(path: string): boolean {
  try {
    closeSync(openSync(path, "wx"));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
