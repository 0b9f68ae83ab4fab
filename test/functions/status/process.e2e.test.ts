/** The status page as its own process, and as a target of functions-framework. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { entryFile } from "../../entries.ts";
import { run } from "../process.ts";
import { setStage, writeKubeconfig } from "../stage.ts";
import { SERVING, startTarget } from "../target.ts";

const ENTRY = entryFile("functions/status/main.ts");

test("the process serves the page until SIGTERM, which ends it at once", { timeout: 300_000 }, async (t) => {
  const KUBECONFIG = await writeKubeconfig(t, await setStage(t));
  const env = { KUBECONFIG, KUBERNETES_NAMESPACE: "default", SERVER_ADDRESS: "127.0.0.1", SERVER_PORT: "0" };
  const page = run(t, process.execPath, [ENTRY], env);
  const { port } = JSON.parse(await page.says(/"what":"status page"/)) as { port: number };
  assert.match(await (await fetch(`http://127.0.0.1:${port}`)).text(), /The cluster knows no RolloutGroup/);
  page.child.kill("SIGTERM");
  assert.equal(await page.exited, 0);
});

test("a bad configuration ends it with 2", { timeout: 300_000 }, async (t) => {
  const page = run(t, process.execPath, [ENTRY], { KUBERNETES_NAMESPACE: "default", STATUS_PAGE_HOSTS: "https://a" });
  await page.says(/STATUS_PAGE_HOSTS is \\"https:\/\/a\\", allowed is host names separated by commas/);
  assert.equal(await page.exited, 2);
});

test("functions-framework serves the page", { timeout: 300_000 }, async (t) => {
  const target = await startTarget(t, "status", { KUBECONFIG: await writeKubeconfig(t, await setStage(t)) });
  await target.says(SERVING);
  const answer = await fetch(target.url);
  assert.deepEqual([answer.status, answer.headers.get("cache-control")], [200, "no-store"]);
  assert.match(await answer.text(), /<h1>Zonewise<\/h1>/);
  assert.equal((await fetch(target.url, { method: "POST" })).status, 405);
});
