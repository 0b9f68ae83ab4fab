/**
 * Processes on machines whose clocks differ by seconds to minutes, with one API server: they write and judge times by
 * its clock.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, it, type TestContext } from "node:test";
import { composeFunctions } from "../../functions/compose.ts";
import type { Answer, Webhook } from "../../functions/http/webhook.ts";
import { type Clock, systemClock } from "../../infra/clock.ts";
import { CLOCK_SKEW_MS } from "../../infra/timestamp.ts";
import { compose as composeReconciler } from "../../reconciler/run/compose.ts";
import { run } from "../../reconciler/run/run.ts";
import { manualClock, type ManualClock } from "../emulator/clock.ts";
import { listen, toLoopback } from "../loopback.ts";
import { reserved, setBudgetStage, writeBudget } from "../reconciler/budget-stage.ts";
import { callWebhook, createZone, scaleReviewOf, setStage, type Stage, writeKubeconfig } from "./stage.ts";

/** Seconds by which the clocks of two machines are ahead of the API server's. */
const SKEWS: readonly (readonly [number, number])[] = [
  [0, 18],
  [18, 0],
  [0, 120],
  [120, 0],
  [0, -600],
  [-600, 120],
];

const skewed = (time: ManualClock, seconds: number): Clock => ({
  ...systemClock,
  now: () => time.now() + seconds * 1000,
});

const envOf = (kubeconfig: string) => ({ KUBECONFIG: kubeconfig, KUBERNETES_NAMESPACE: "default", LOG_LEVEL: "error" });

/** The webhook of a new process. */
async function webhookOf(name: Webhook["name"], kubeconfig: string, clock: Clock): Promise<Webhook> {
  const { webhooks } = await composeFunctions(envOf(kubeconfig), clock, toLoopback);
  const webhook = webhooks.find((candidate) => candidate.name === name);
  assert.ok(webhook);
  return webhook;
}

/** Pods that answer once `answer` is called; `called` resolves at the first request. */
async function playSlowPods(t: TestContext) {
  const called = Promise.withResolvers<void>();
  const answers = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    called.resolve();
    void answers.promise.then(() => response.end());
  });
  const port = await listen(server);
  t.after(() => (server.closeAllConnections(), server.close()));
  return {
    called: called.promise,
    answer: answers.resolve,
    annotations: { "grafana.com/prepare-downscale-http-port": String(port) },
  };
}

/** Stores the admitted downscale, and does the controllers' work. */
function shrink({ emulator: { store } }: Stage, name: string, to: number): void {
  const set = store.get("statefulsets.apps", "default", name);
  assert.ok(set);
  const { metadata } = store.update("statefulsets.apps", {
    ...set,
    spec: { ...(set["spec"] as object), replicas: to },
  });
  for (const pod of store
    .list("pods")
    .filter(({ metadata }) => metadata.name.startsWith(`${name}-`))
    .slice(to))
    store.remove("pods", "default", pod.metadata.name, { gracePeriodSeconds: 0 });
  const shrunk = store.get("statefulsets.apps", "default", name);
  const counts = { replicas: to, readyReplicas: to, updatedReplicas: to };
  const status = { ...(set["status"] as object), ...counts, observedGeneration: metadata.generation };
  if (shrunk) store.update("statefulsets.apps", { ...shrunk, status });
}

describe("two zones with 12 h between their downscales", () => {
  for (const [one, two] of SKEWS)
    it(`are, through processes ${one} s and ${two} s ahead of the API server`, async (t) => {
      const time = manualClock();
      const stage = await setStage(t, time);
      const kubeconfig = await writeKubeconfig(t, stage);
      const pods = await playSlowPods(t);
      const traits = {
        annotations: pods.annotations,
        labels: { "grafana.com/min-time-between-zones-downscale": "12h" },
      };
      const [a, b] = ["a", "b"].map((zone) => createZone(stage, `ingester-zone-${zone}`, traits));
      assert.ok(a && b);
      const first = await webhookOf("prepareDownscale", kubeconfig, skewed(time, one));
      const second = await webhookOf("prepareDownscale", kubeconfig, skewed(time, two));
      let uid = 0;
      const shrinkB = async (): Promise<boolean> =>
        (await callWebhook(second, scaleReviewOf(b, 1, { uid: `b-${uid++}` }))).allowed;

      const shrinkingA = callWebhook(first, scaleReviewOf(a, 1));
      await pods.called;
      assert.equal(await shrinkB(), false, "while the first is under way");
      pods.answer();
      assert.equal((await shrinkingA).allowed, true);
      shrink(stage, "ingester-zone-a", 1);
      assert.equal(await shrinkB(), false, "right after it");
      await time.advance(12 * 3_600_000 - CLOCK_SKEW_MS);
      assert.equal(await shrinkB(), false, "just before the 12 h are over");
      await time.advance(2 * CLOCK_SKEW_MS);
      assert.equal(await shrinkB(), true, "just after");
    });
});

describe("a reservation", () => {
  const evict = (webhook: Webhook, name: string): Promise<Answer> =>
    callWebhook(webhook, {
      uid: name,
      operation: "CREATE",
      subResource: "eviction",
      namespace: "default",
      name: `ingester-${name}`,
      dryRun: false,
      kind: { group: "policy", version: "v1", kind: "Eviction" },
      resource: { group: "", version: "v1", resource: "pods" },
    });

  for (const [one, two] of SKEWS)
    it(`lasts its 2 minutes, for processes ${one} s and ${two} s ahead of the API server and the reconciler`, async (t) => {
      const stage = await setBudgetStage();
      t.after(() => stage.close());
      writeBudget(stage);
      const kubeconfig = await writeKubeconfig(t, stage);
      const first = await webhookOf("podEviction", kubeconfig, skewed(stage.time, one));
      const second = await webhookOf("podEviction", kubeconfig, skewed(stage.time, two));
      const reconcile = async (): Promise<void> => {
        const { run: input } = await composeReconciler(envOf(kubeconfig), skewed(stage.time, two));
        const { exitCode } = await run({ ...input, once: true, stop: new AbortController().signal });
        assert.equal(exitCode, 0);
      };

      assert.equal((await evict(first, "zone-a-0")).allowed, true);
      assert.equal((await evict(second, "zone-b-0")).allowed, false, "two zones at once");
      await reconcile();
      assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"], "erased early");
      await stage.time.advance(120_000 - CLOCK_SKEW_MS);
      assert.equal((await evict(second, "zone-b-0")).allowed, false, "just before the 2 minutes are over");
      await stage.time.advance(2 * CLOCK_SKEW_MS);
      assert.equal((await evict(second, "zone-b-0")).allowed, true, "just after");
      assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-b-0"]);
    });
});
