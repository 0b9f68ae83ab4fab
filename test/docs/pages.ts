/** The project's documentation, and the sources that it describes. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

/** Every page, by its path from the root. */
export const PAGES = globSync(["*.md", "{docs,knative,test}/**/*.md"], { cwd: ROOT });

export const readPage = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** The product's sources as one text. */
export function readSources(...folders: readonly string[]): string {
  const files = globSync(
    folders.map((folder) => `${folder}/**/*.ts`),
    { cwd: ROOT },
  );
  return files.map((file) => readPage(file)).join("\n");
}
