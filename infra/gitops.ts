/**
 * `npm run gitops`: copies the health rules of `infra/gitops/rules` into the files for the engines that run Lua. Users
 * copy each of these files as it is, so it has to contain its rules.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = "infra/gitops";
/** A rule in a file: from this comment to the next one. The text between them is written here. */
const RULE = /^(?<indent> *)-- rule: (?<name>\w+)\n[^]*?^ *-- end of rule$/gm;

/** Paths of the engines' files from the repository's root. */
export const findEngineFiles = (root: string): string[] =>
  globSync([`${FOLDER}/*.yaml`, `${FOLDER}/*/*.yaml`], { cwd: root }).toSorted();

/**
 * The text of a file with its rules as they are in the folder `rules`. Throws if it names a rule that does not exist.
 */
export function withRules(root: string, text: string): string {
  const read = (name: string): string => readFileSync(join(root, FOLDER, "rules", `${name}.lua`), "utf8");
  return text.replaceAll(RULE, (_, indent: string, name: string) => {
    const parts = name === "StatefulSet" ? ["answer", name] : ["answer", "common", name, "seen"];
    const lines = `-- rule: ${name}\n${parts.map(read).join("")}-- end of rule`.split("\n");
    return lines.map((line) => (line === "" ? line : indent + line)).join("\n");
  });
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  for (const file of findEngineFiles(root).map((path) => join(root, path)))
    writeFileSync(file, withRules(root, readFileSync(file, "utf8")));
}
