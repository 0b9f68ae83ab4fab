#!/usr/bin/env node
/**
 * Makes the pictures of the status page during a run, in docs/status-page: wide, medium and on a phone, light and dark.
 * `node test/functions/status/take-picture.ts`
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openBrowser, setScene } from "./scene.ts";

const FOLDER = join(import.meta.dirname, "../../../docs/status-page");
/** Milliseconds: slow enough for a budget's status to be written while pods are replaced. */
const READY_MS = 9000;
const BUDGET_STATUS_MS = 33_000;
/** Pixels. */
const WIDTHS = [1440, 1024, 390] as const;
const HEIGHT = 1060;

await using scene = await setScene(READY_MS);
await sleep(BUDGET_STATUS_MS);
// A pod of a zone that keeps its template: nothing but a deletion by hand ends the wait for it.
await scene.crash("ingester-zone-b-1");
await sleep(1000);
await scene.rollOut("ingester", ["a", "c"]);
await scene.rollOut("store");
const browser = await openBrowser();
const page = await browser.newPage({ viewport: { width: WIDTHS[0], height: HEIGHT }, reducedMotion: "reduce" });
await page.goto(scene.url);
await page.getByText("ZoneNotReady", { exact: true }).waitFor({ timeout: 120_000 });
await page.getByText("not ready", { exact: true }).or(page.locator(".pods .busy")).first().waitFor({ timeout: 60_000 });
await page.getByRole("button", { name: "Pause updates" }).click();
await mkdir(FOLDER, { recursive: true });
for (const width of WIDTHS)
  for (const colorScheme of ["light", "dark"] as const) {
    await page.setViewportSize({ width, height: HEIGHT });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.screenshot({ path: join(FOLDER, `${width}-${colorScheme}.png`) });
  }
await browser.close();
process.exitCode = 0;
