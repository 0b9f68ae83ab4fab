/** Faults of accessibility of a page, by axe. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Fails with each fault and its element. The page must be open without a content security policy (`bypassCSP`). */
export async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const { violations, passes } = await page.evaluate<AxeResults>("axe.run()");
  assert.deepEqual(
    violations.map(({ id, nodes }) => [id, ...nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`)]),
    [],
  );
  assert.ok(passes.some(({ id }) => id === "color-contrast"));
}
