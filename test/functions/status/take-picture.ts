#!/usr/bin/env node
/**
 * Makes docs/status-page.png, the picture of the status page during a run: `node test/functions/status/take-picture.ts`
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openBrowser } from "./chromium.ts";
import { setScene } from "./scene.ts";

const FILE = join(import.meta.dirname, "../../../docs/status-page.png");
/** Milliseconds: slow enough for a budget's status to be written while pods are replaced. */
const READY_MS = 9000;
const BUDGET_STATUS_MS = 33_000;
const [WIDTH, HEIGHT] = [1040, 1060];

await using scene = await setScene(READY_MS);
await sleep(BUDGET_STATUS_MS);
// A pod of a zone that keeps its template: nothing but a deletion by hand ends the wait for it.
await scene.crash("ingester-zone-b-1");
await sleep(1000);
await scene.rollOut("ingester", ["a", "c"]);
await scene.rollOut("store");
const browser = await openBrowser();
const page = await browser.newPage({ viewport: { width: WIDTH, height: HEIGHT }, reducedMotion: "reduce" });
await page.goto(scene.url);
// The hold has lasted longer than is ordinary: the group waits.
await page.getByText("1 Waiting").waitFor({ timeout: 120_000 });
await page.getByText("not ready", { exact: true }).or(page.locator(".pods .busy")).first().waitFor({ timeout: 60_000 });
await page.screenshot({ path: FILE });
await browser.close();
process.exitCode = 0;
