/** `npm run docs`: writes the generated tables into the pages that have a place for them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PAGES, readPage, ROOT } from "../pages.ts";
import { renderBlocks } from "./render.ts";

for (const path of PAGES) {
  const before = readPage(path);
  const after = renderBlocks(before);
  if (after !== before) writeFileSync(join(ROOT, path), after);
}
