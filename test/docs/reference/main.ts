/**
 * `npm run docs`: writes the generated tables into the pages that have a place for them, and the reasons into the alert
 * of blocked groups; `npm run chart` copies that.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PAGES, readPage, ROOT } from "../pages.ts";
import { renderAlert, renderBlocks } from "./render.ts";

function rewrite(path: string, render: (text: string) => string): void {
  const before = readPage(path);
  const after = render(before);
  if (after !== before) writeFileSync(join(ROOT, path), after);
}

for (const path of PAGES) rewrite(path, renderBlocks);
rewrite("infra/observability/prometheus-rule.yaml", renderAlert);
