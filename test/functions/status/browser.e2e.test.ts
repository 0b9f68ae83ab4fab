/** The status page in a real browser, beside a run on the embedded cluster. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, it } from "node:test";
import type { AxeResults } from "axe-core";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { openBrowser, type Scene, setScene, WITHOUT_BROWSER } from "./scene.ts";

/** Milliseconds: a machine may be busy with other tests. */
const TIMEOUT_MS = 60_000;

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Fails with each fault of accessibility, by axe, and its element. The page must be open without a content security policy (`bypassCSP`). */
async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const { violations, passes } = await page.evaluate<AxeResults>("axe.run()");
  assert.deepEqual(
    violations.map(({ id, nodes }) => [id, ...nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`)]),
    [],
  );
  assert.ok(passes.some(({ id }) => id === "color-contrast"));
}

describe("the status page in a browser", { skip: WITHOUT_BROWSER, timeout: 300_000 }, () => {
  let browser: Browser;
  let scene: Scene;
  before(async () => {
    [browser, scene] = await Promise.all([openBrowser(), setScene()]);
    await scene.crash("ingester-zone-a-1");
    await scene.crash("ingester-zone-c-0");
  });
  after(async () => {
    await browser.close();
    await scene[Symbol.asyncDispose]();
  });

  /** Opens the page; `complaints` are the browser's: errors, and what the policy has refused. */
  async function open(
    path = "/",
    options: BrowserContextOptions = {},
  ): Promise<{ page: Page; complaints: string[] } & AsyncDisposable> {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.setDefaultTimeout(TIMEOUT_MS);
    const complaints: string[] = [];
    page.on("console", (message) => void (message.type() === "error" && complaints.push(message.text())));
    page.on("pageerror", ({ message }) => void complaints.push(message));
    await page.goto(`${scene.url}${path}`);
    return { page, complaints, [Symbol.asyncDispose]: () => context.close() };
  }

  const sectionOf = (page: Page, group: string) => page.locator(`section.group`, { hasText: `default/${group}` });

  it("shows what blocks a group and goes on with its rollout, without a reload", async () => {
    await using opened = await open();
    const { page, complaints } = opened;
    await page.evaluate("window.isTheSame = true");
    // Only the zone that works: pods that crash are replaced as soon as their own zone has another revision.
    await scene.rollOut("ingester", ["b"]);
    await sectionOf(page, "ingester").getByText("MultipleZonesNotReady").waitFor();
    await sectionOf(page, "ingester").getByText("CrashLoopBackOff").first().waitFor();
    await scene.rollOut("compactor");
    await sectionOf(page, "compactor").getByText("replace 3 pods of compactor-zone-b").waitFor();
    await page.getByRole("row", { name: /default\/compactor Ready 3\/3 9\/9 9\/9/ }).waitFor();
    assert.equal(await page.evaluate("window.isTheSame"), true);
    assert.deepEqual(complaints, []);
  });

  it("keeps the focus while the part around it changes, and changes nothing while it is paused", async () => {
    await using opened = await open("/?namespace=default&group=store");
    const { page } = opened;
    const text = async (): Promise<string> => (await page.locator("main").textContent()) ?? "";
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.id"), "pause");
    for (let presses = 0; (await page.evaluate("document.activeElement.textContent")) !== "default/store"; presses++) {
      assert.ok(presses < 5, "the link is reached by the keyboard");
      await page.keyboard.press("Tab");
    }
    await scene.rollOut("store");
    await page.getByText("replace 3 pods of store-zone-b").waitFor();
    assert.equal(await page.evaluate("document.activeElement.textContent"), "default/store");

    await page.getByRole("button", { name: "Pause updates" }).click();
    const paused = await text();
    await page.waitForTimeout(5000);
    assert.equal(await text(), paused);
    await page.getByRole("button", { name: "Pause updates", pressed: true }).click();
    await page.waitForFunction((before) => document.querySelector("main")?.textContent !== before, paused);
  });

  it("says so when no answer comes, and goes on when one does", async () => {
    await using opened = await open();
    const { page } = opened;
    await page.route("**", (route) => route.abort());
    await page
      .getByRole("alert")
      .getByText(/^No answer \(.*\): this is how it was at /)
      .waitFor();
    await page.unroute("**");
    await page.getByRole("alert").waitFor({ state: "hidden" });
  });

  it("holds no part that it has replaced: it may stay open for days", async () => {
    await using opened = await open();
    const { page } = opened;
    const session = await page.context().newCDPSession(page);
    const countNodes = async (): Promise<number> => {
      await session.send("HeapProfiler.collectGarbage");
      return (await session.send("Memory.getDOMCounters")).nodes;
    };
    /** Shows the page so often, each time with other sentences: the functions are those of its script. */
    const change = async (times: number): Promise<void> =>
      await page.evaluate(`(async () => {
        const text = await (await fetch(location.href)).text();
        for (let i = 0; i < ${times}; i++)
          show(new DOMParser().parseFromString(text.replaceAll("</h3>", " " + i + "</h3>").replaceAll("</td>", " " + i + "</td>"), "text/html"));
      })()`);
    await page.getByRole("button", { name: "Pause updates" }).click();
    await change(5);
    const before = await countNodes();
    await change(100);
    const after = await countNodes();
    assert.ok(after < before * 2, `${before} nodes of the document have become ${after}`);
  });

  it("is complete without JavaScript", async () => {
    await using opened = await open("/", { javaScriptEnabled: false });
    const { page } = opened;
    await sectionOf(page, "ingester").getByText("MultipleZonesNotReady").waitFor();
    assert.equal(await page.getByRole("button").count(), 0);
    await page.getByRole("link", { name: "default/ingester" }).click();
    await page.getByRole("link", { name: "All groups" }).waitFor();
  });

  it("fits a phone: nothing is cut off, and the crashed pod is seen", async () => {
    await using opened = await open("/", { bypassCSP: true, reducedMotion: "reduce" });
    const { page } = opened;
    for (const width of [430, 390, 320]) {
      await page.setViewportSize({ width, height: 800 });
      const beyond = await page.evaluate<string[]>(
        `[...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > ${width}
          || one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "visible").map((one) => one.outerHTML.slice(0, 200))`,
      );
      assert.deepEqual(beyond, [], `${width} px`);
    }
    await sectionOf(page, "ingester").getByText("CrashLoopBackOff").first().waitFor();
    await assertAccessible(page);
  });

  for (const colorScheme of ["light", "dark"] as const)
    for (const path of ["/", "/?namespace=default&group=ingester", "/?namespace=default&group=missing"])
      it(`has no fault of accessibility at ${path} in ${colorScheme} colours`, async () => {
        await using opened = await open(path, { colorScheme, bypassCSP: true, reducedMotion: "reduce" });
        const { page } = opened;
        await assertAccessible(page);
      });
});
