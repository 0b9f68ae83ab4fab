/** A copy of the source tree that may be mutated; installed packages are linked. */
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

// The test of the mutation table would notice every mutation.
const LEFT_OUT: ReadonlySet<string> = new Set(["node_modules", ".git", "dist", "test/mutation/mutate.test.ts"]);

/** Copies the tree at `root` into a temporary folder, which `remove` deletes. */
export async function copyTree(root: string): Promise<{ readonly path: string; readonly remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "mutate-"));
  await cp(root, path, { recursive: true, filter: (source) => !LEFT_OUT.has(relative(root, source)) });
  await symlink(join(root, "node_modules"), join(path, "node_modules"));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}
