/** The Headlamp plugin in a real browser, in a stub of Headlamp, beside embedded clusters. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import type { Emulator } from "../emulator/index.ts";
import { assertAccessible } from "../functions/status/accessibility.ts";
import { openBrowser, WITHOUT_BROWSER } from "../functions/status/chromium.ts";
import { HOSTILE, startCluster, startEmpty, tick } from "./clusters.ts";
import { type Host, startHost } from "./host.ts";

/** Milliseconds: a machine may be busy with other tests. */
const TIMEOUT_MS = 60_000;
/** Two hours without a tick. */
const OLD_MS = 7_200_000;

describe("the Headlamp plugin in a browser", { skip: WITHOUT_BROWSER, timeout: 300_000 }, () => {
  let browser: Browser;
  let host: Host;
  let clusters: Record<string, Emulator>;
  before(async () => {
    const [one, old, empty] = await Promise.all([startCluster(), startCluster({ tickedMs: OLD_MS }), startEmpty()]);
    clusters = { one, old, empty };
    [browser, host] = await Promise.all([openBrowser(), startHost(clusters)]);
  });
  // The tests of a busy machine may take longer than a cluster may be without a tick.
  beforeEach(() => tick(clusters["one"] ?? assert.fail()));
  after(async () => {
    await browser.close();
    await host[Symbol.asyncDispose]();
    for (const emulator of Object.values(clusters)) await emulator.stop();
  });

  async function open(
    path: string,
    options: BrowserContextOptions = {},
  ): Promise<{ page: Page; complaints: string[]; text: () => Promise<string> } & AsyncDisposable> {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.setDefaultTimeout(TIMEOUT_MS);
    const complaints: string[] = [];
    page.on("pageerror", ({ message }) => void complaints.push(message));
    await page.goto(`${host.url}${path}`);
    // Playwright's locators see into open shadow roots, `textContent` does not.
    const text = async (): Promise<string> => (await page.locator(".page").allInnerTexts()).join("\n");
    return { page, complaints, text, [Symbol.asyncDispose]: () => context.close() };
  }

  const hasRead = (page: Page, cluster: string): Promise<void> =>
    page
      .locator(".page", { hasText: `Cluster ${cluster}` })
      .getByText("zonewise-1")
      .waitFor();

  it("shows groups, zones, pods, plan, budgets, gates, PhasedRollouts and node updates", async () => {
    await using opened = await open("/c/one/zonewise");
    const { page, text, complaints } = opened;
    await hasRead(page, "one");
    const shown = await text();
    for (const expected of [
      "1 Waiting, 1 Ready",
      "OtherZoneNotReady since",
      "store-zone-b waits for store-zone-a",
      "CrashLoopBackOff",
      "replace 3 pods of store-zone-b",
      "store-zone-a: 1 of 2, 0",
      "default/errors",
      "False GateFailed",
      "before store-zone-b: rate failed 3 times",
      "default/guard",
      "another PhasedRollout manages db",
      "ErrorCannotManage (stalled)",
      "4/9",
      "node-7 Draining",
      "4 OutsideWindow",
    ])
      assert.ok(shown.includes(expected), `${expected}\n\n${shown}`);
    assert.ok(shown.includes("\\u202e") && !shown.includes(HOSTILE), "what is not seen is shown by its code");
    assert.deepEqual(complaints, []);
  });

  it("says before all else that no tick comes", async () => {
    await using opened = await open("/c/old/zonewise");
    const { page, text } = opened;
    await hasRead(page, "old");
    assert.match(
      await text(),
      /^Cluster old\n+Reconciler: no tick since .* Nothing is rolled out or scaled.*\n+No tick\. As recorded: 1 Waiting, 1 Ready\n/,
    );
  });

  it("says of a cluster without Zonewise that there is nothing, in sentences", async () => {
    await using opened = await open("/c/empty/zonewise");
    const { page, text } = opened;
    await page.getByText("The cluster knows no NodeUpdatePolicy.").waitFor();
    assert.match(await text(), /The cluster knows no RolloutGroup: install the definitions/);
    assert.match(await text(), /The cluster knows no RolloutGate\./);
  });

  it("says of a cluster that Headlamp does not know that it is unknown, not empty", async () => {
    await using opened = await open("/c/missing/zonewise");
    const { page, text } = opened;
    await page.getByText("Headlamp knows no cluster missing").first().waitFor();
    assert.doesNotMatch(await text(), /There is no|knows no RolloutGroup/);
  });

  it("names the right that is missing, and shows the rest", async () => {
    host.denied.add("pods").add("rolloutgates");
    try {
      await using opened = await open("/c/one/zonewise");
      const { page, text } = opened;
      await page.getByText("ann may not list rolloutgates.zonewise.dev in the whole cluster").waitFor();
      const shown = await text();
      assert.match(shown, /ann may not list pods in namespace default: the ClusterRole zonewise-viewer allows it/);
      assert.match(shown, /choose these in Headlamp's namespace filter/);
      assert.match(shown, /1 Waiting, 1 Ready/);
    } finally {
      host.denied.clear();
    }
  });

  it("says that there is no answer, and shows what it read last", async () => {
    await using opened = await open("/c/one/zonewise");
    const { page, text } = opened;
    await hasRead(page, "one");
    host.silent.add("one");
    try {
      await page.getByText("the rollout groups could not be read, and are shown as they were read last").waitFor();
      assert.match(await text(), /OtherZoneNotReady since/);
    } finally {
      host.silent.clear();
    }
    await page.getByText("could not be read").first().waitFor({ state: "detached" });
  });

  it("reads the namespaces that are chosen in Headlamp, or allowed by the cluster's settings", async () => {
    for (const query of ["filter=other", "allowed=other"]) {
      const from = host.asked.length;
      await using opened = await open(`/c/one/zonewise?${query}`);
      await opened.page.getByText("There is no rollout group.").waitFor();
      const lists = host.asked.slice(from).filter((line) => line.includes("/rolloutgroups"));
      assert.ok(lists.length > 0 && lists.every((line) => line.includes("/namespaces/other/")), lists.join("\n"));
    }
  });

  it("shows several clusters side by side, and a link goes to a group without a reload", async () => {
    await using opened = await open("/c/one+old/zonewise");
    const { page } = opened;
    await Promise.all([hasRead(page, "one"), hasRead(page, "old")]);
    assert.equal(await page.locator(".page").count(), 2);
    await page.evaluate("window.isTheSame = true");
    await page.locator(".page", { hasText: "Cluster one" }).getByRole("link", { name: "default/store" }).click();
    await page.waitForURL(`${host.url}/c/one/zonewise/default/store`);
    await page.getByRole("link", { name: "All groups" }).click();
    await page.waitForURL(`${host.url}/c/one/zonewise`);
    assert.equal(await page.evaluate("window.isTheSame"), true);
  });

  it("shows the group of a StatefulSet below its details, and nothing below another's", async () => {
    await using opened = await open("/c/one/details/apis/apps/v1/namespaces/default/statefulsets/store-zone-a");
    await opened.page.getByRole("heading", { name: "Zonewise: rollout group store" }).waitFor();
    await opened.page.getByText("OtherZoneNotReady").waitFor();
    await using other = await open("/c/one/details/apis/apps/v1/namespaces/default/statefulsets/db");
    await other.page.waitForLoadState("networkidle");
    assert.equal(await other.page.getByRole("heading").count(), 0);
  });

  it("keeps the focus while what is around it changes", async () => {
    await using opened = await open("/c/one/zonewise");
    const { page } = opened;
    await hasRead(page, "one");
    await page.getByRole("link", { name: "default/store" }).focus();
    const { store } = clusters["one"] ?? assert.fail();
    const group = store.get("rolloutgroups.zonewise.dev", "default", "quiet") ?? assert.fail();
    store.update("rolloutgroups.zonewise.dev", {
      ...group,
      status: { ...(group["status"] as object), phase: "Paused" },
    });
    await page.getByText("1 Waiting, 1 Paused").waitFor();
    const focused =
      "[...document.querySelectorAll('*')].find((one) => one.shadowRoot)?.shadowRoot.activeElement?.textContent";
    assert.equal(await page.evaluate(focused), "default/store");
    store.update("rolloutgroups.zonewise.dev", {
      ...store.get("rolloutgroups.zonewise.dev", "default", "quiet"),
      status: group["status"],
    } as never);
  });

  it("stops asking when another page is shown", async () => {
    await using opened = await open("/c/one/zonewise/default/store");
    await hasRead(opened.page, "one");
    await opened.page.evaluate(
      "history.pushState({}, '', '/c/one/details/api/v1/namespaces/default'); dispatchEvent(new PopStateEvent('popstate'))",
    );
    await opened.page.waitForTimeout(1000);
    const from = host.asked.length;
    await opened.page.waitForTimeout(6000);
    assert.deepEqual(host.asked.slice(from), []);
  });

  for (const theme of ["light", "dark"])
    for (const path of ["/c/one/zonewise", "/c/one+old/zonewise", "/c/one/zonewise/default/store", "/c/empty/zonewise"])
      it(`has no fault of accessibility at ${path} in Headlamp's ${theme} theme`, async () => {
        await using opened = await open(`${path}?theme=${theme}`, { reducedMotion: "reduce" });
        const { page } = opened;
        await (path.includes("empty")
          ? page.getByText("The cluster knows no NodeUpdatePolicy.").waitFor()
          : hasRead(page, "one"));
        await assertAccessible(page);
      });

  it("fits a phone: nothing is cut off", async () => {
    await using opened = await open("/c/one/zonewise", { reducedMotion: "reduce" });
    const { page } = opened;
    await hasRead(page, "one");
    for (const width of [430, 390, 320]) {
      await page.setViewportSize({ width, height: 800 });
      const beyond = await page.evaluate<string[]>(
        `[...document.querySelectorAll("*")].flatMap((one) => [...(one.shadowRoot?.querySelectorAll("*") ?? [])])
          .filter((one) => one.tagName !== "STYLE" && one.getBoundingClientRect().right > ${width}).map((one) => one.outerHTML.slice(0, 200))`,
      );
      assert.deepEqual(beyond, [], `${width} px`);
    }
  });

  it("has only read", () =>
    assert.deepEqual(
      host.asked.filter((line) => !line.startsWith("GET ")),
      [],
    ));
});
