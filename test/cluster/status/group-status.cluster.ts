/** What kubectl and the status page show a person or a pipeline of a group, on the real control plane. */
import assert from "node:assert/strict";
import { before } from "node:test";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { applyRbac, writeKubeconfig } from "../stage/access.ts";
import { connectAdmin } from "../stage/client.ts";
import { startEntry } from "../stage/process.ts";
import { define } from "../stage/definitions.ts";
import { readRow, waitFor } from "../stage/rollout-groups.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { isDone } from "../stage/zones.ts";

const ZONES = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name, replicas: 2 }));

before(async () => {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  await define(admin, "rolloutgroups", "zoneawarepoddisruptionbudgets");
  admin.close();
});

/** What a pipeline does after its apply. */
async function ask({ kubectl }: Stage, checkpoint: string): Promise<void> {
  const patch = JSON.stringify({ spec: { checkpoint } });
  const { code, text } = await kubectl(["patch", "rolloutgroup", "cache", "--type=merge", "-p", patch]);
  assert.equal(code, 0, text);
}

scenario("kubectl wait ends with the rollout that was applied before it, each time, and not sooner", async (stage) => {
  await stage.create(ZONES);
  const reconciler = stage.start();
  await reconciler.untilOutput(/"settled":1/);
  assert.equal((await waitFor(stage.namespace, "Ready")).code, 0);
  for (const image of ["app:2", "app:3", "app:4"]) {
    await stage.setImage(image, ZONES);
    await ask(stage, image);
    const { code, text } = await waitFor(stage.namespace, "Ready");
    assert.equal(code, 0, text);
    // A watch would tell of what was before.
    const { items } = await stage.call<{ items: StatefulSet[] }>(
      "GET",
      `/apis/apps/v1/namespaces/${stage.namespace}/statefulsets`,
    );
    assert.equal(items.length, ZONES.length);
    const late = items.filter((set) => !isDone(set, image)).map(({ metadata }) => metadata?.name);
    assert.deepEqual(late, [], `ready before ${image} was everywhere`);
  }
  assert.equal(await reconciler.end(), 0);
});

/** The status page under its own account. `read` resolves once it says all of this. */
async function startPage(stage: Stage) {
  const { admin, namespace } = stage;
  await applyRbac(admin, namespace, "status-page");
  const kubeconfig = await writeKubeconfig(stage, "zonewise-status");
  const server = { SERVER_ADDRESS: "127.0.0.1", SERVER_PORT: "0" };
  const page = startEntry("functions/status/main.ts", {
    PATH: process.env["PATH"] ?? "",
    KUBERNETES_NAMESPACE: namespace,
    KUBECONFIG: kubeconfig,
    ...server,
  });
  const listening = /"what":"status page","port":(\d+)/;
  await page.untilOutput(listening);
  const url = `http://127.0.0.1:${listening.exec(page.output())?.[1]}/`;
  return {
    end: page.end,
    async read(...said: readonly RegExp[]): Promise<void> {
      let text = "";
      await until(
        () => `the page says ${said.join(" and ")}: ${text}`,
        async () => {
          text = (await (await fetch(url)).text())
            .replaceAll(/<(style|script)>.*?<\/\1>|<[^>]*>/gs, " ")
            .replaceAll(/\s+/g, " ");
          return said.every((one) => one.test(text));
        },
      );
    },
  };
}

/** The row of a group whose first pod crashes in its new version. */
const BLOCKED: Readonly<Record<string, string | RegExp>> = {
  PHASE: "Blocked",
  READY: "False",
  ZONES: "0/3",
  UPDATED: "1/6",
  "PODS-READY": "5/6",
  ZONE: "zone-a",
  REASON: "MaxUnavailableReached",
  "WAITS-FOR": "pod/zone-a-0",
  MESSAGE: /^no step since .*: zone-a-0: CrashLoopBackOff; at most 1 of zone-a may be unavailable/,
  "LAST-STEP": /^(?:\d+m)?(?:\d+s)?$/,
};

scenario(
  "the columns and the page show where a rollout stands, what it waits for, and that it is blocked",
  async (stage) => {
    await stage.create(ZONES);
    const page = await startPage(stage);
    const reconciler = stage.start({ RECONCILE_INTERVAL: "1s" });
    await reconciler.untilOutput(/"settled":1/);
    assert.equal((await waitFor(stage.namespace, "Ready")).code, 0);
    const ready = await readRow(stage.namespace);
    assert.partialDeepStrictEqual(ready, {
      PHASE: "Ready",
      READY: "True",
      ZONES: "3/3",
      UPDATED: "6/6",
      "PODS-READY": "6/6",
      ZONE: "",
    });

    const deadline = ["patch", "rg", "cache", "--type=merge", "-p", '{"spec":{"progressDeadlineSeconds":3}}'];
    const patched = await stage.kubectl(deadline);
    assert.equal(patched.code, 0, patched.text);
    await stage.setImage("app:2", ZONES, { "sim/crash": "true" });
    assert.equal((await waitFor(stage.namespace, "Stalled")).code, 0);
    // On a slow machine it is blocked before the pod has come back, or has crashed; then it stays like this.
    let row: Readonly<Record<string, string>> = {};
    const isBlocked = async (): Promise<boolean> => {
      row = await readRow(stage.namespace);
      return Object.entries(BLOCKED).every(([column, text]) =>
        typeof text === "string" ? row[column] === text : text.test(row[column] ?? ""),
      );
    };
    await until(() => `the row shows why: ${JSON.stringify(row)}`, isBlocked);
    await page.read(
      /1 Blocked/,
      /MaxUnavailableReached since .* zone-a-0: CrashLoopBackOff; at most 1 of zone-a may be/,
      /○ 0 \w+ CrashLoopBackOff/,
      /Last tick \d\d:/,
    );

    await stage.setImage("app:3", ZONES, { "sim/crash": "false" });
    await ask(stage, "app:3");
    assert.equal((await waitFor(stage.namespace, "Ready")).code, 0);
    await page.read(/1 Ready/, /cache Ready 3\/3 6\/6 6\/6/);
    assert.equal(await page.end(), 0);
    assert.equal(await reconciler.end(), 0);
  },
);
