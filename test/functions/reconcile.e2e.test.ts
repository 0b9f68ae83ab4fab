/** The tick as a function, in the real functions-framework process, against the embedded cluster. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { createReconcileTargets } from "../../functions/reconcile.ts";
import { systemClock } from "../../infra/clock.ts";
import { NO_TRACER, type Tracer } from "../../infra/tracing/tracer.ts";
import { compose } from "../../reconciler/run/compose.ts";
import { startEmulator, type Emulator } from "../emulator/index.ts";
import { SERVING, startTarget } from "./target.ts";

describe("reconcile as a function", () => {
  let emulator: Emulator;
  let folder = "";
  before(async () => {
    emulator = await startEmulator();
    folder = await mkdtemp(join(tmpdir(), "function-"));
    await emulator.writeKubeconfig(join(folder, "kubeconfig"));
    const metadata = { name: "zone-a", namespace: "default", labels: { "rollout-group": "g" } };
    const template = { metadata: { labels: { name: "zone-a" } }, spec: { containers: [{ name: "c", image: "x" }] } };
    const spec = {
      serviceName: "g",
      replicas: 1,
      updateStrategy: { type: "RollingUpdate" },
      selector: { matchLabels: { name: "zone-a" } },
      template,
    };
    emulator.store.create("statefulsets.apps", { apiVersion: "apps/v1", kind: "StatefulSet", metadata, spec });
  });
  after(async () => {
    await emulator.stop();
    await rm(folder, { recursive: true });
  });

  const start = async (
    t: TestContext,
    target: string,
    type: string,
    env: Record<string, string> = {},
  ): Promise<string> => {
    const variables = { KUBECONFIG: join(folder, "kubeconfig"), ...env };
    const { says, url } = await startTarget(t, target, variables, `--signature-type=${type}`);
    await says(SERVING);
    return url;
  };

  it("answers concurrent POSTs with the outcome of each group", async (t) => {
    const url = await start(t, "reconcile", "http");
    const post = async (): Promise<unknown> => await (await fetch(url, { method: "POST" })).json();
    const answers = await Promise.all([post(), post(), post(), post()]);
    const group = { namespace: "default", group: "g", state: "held", reason: "UpdateStrategyNotOnDelete" };
    for (const answer of answers) assert.partialDeepStrictEqual(answer, { failed: true, groups: [group] });
    const refused = await fetch(url);
    assert.deepEqual([refused.status, refused.headers.get("allow")], [405, "POST"]);
  });

  it("accepts a CloudEvent as a hint", async (t) => {
    const url = await start(t, "reconcileEvent", "cloudevent");
    const headers = {
      "ce-id": "1",
      "ce-source": "/test",
      "ce-type": "dev.knative.sources.ping",
      "ce-specversion": "1.0",
      "content-type": "application/json",
    };
    const answer = await fetch(url, { method: "POST", headers, body: "{}" });
    assert.equal(answer.status, 204);
  });

  it("sends its traces after each tick, and waits for no collector", { timeout: 120_000 }, async () => {
    const flushes: string[] = [];
    const never = new Promise<void>(() => {});
    const tracer: Tracer = { ...NO_TRACER, flush: () => (flushes.push("flush"), never) };
    const env = { KUBECONFIG: join(folder, "kubeconfig"), KUBERNETES_NAMESPACE: "default", LOG_LEVEL: "error" };
    const { reconcileEvent } = createReconcileTargets(env, systemClock, async (...given) => {
      const { run, ...composition } = await compose(...given);
      return { ...composition, run: { ...run, tracer } };
    });
    // With a wait for the collector neither would ever end.
    await reconcileEvent(undefined as never);
    await reconcileEvent(undefined as never);
    assert.deepEqual(flushes, ["flush", "flush"]);
  });

  it("names the wrong variable, without a stack trace", async (t) => {
    const url = await start(t, "reconcile", "http", { RECONCILE_INTERVAL: "soon" });
    const answer = await fetch(url, { method: "POST" });
    const { error } = (await answer.json()) as { error: string };
    assert.equal(answer.status, 500);
    assert.match(error, /RECONCILE_INTERVAL is "soon"/);
  });
});
