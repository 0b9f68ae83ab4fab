import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../infra/clock.ts";
import { systemClock as storeClock } from "../emulator/clock.ts";
import { callWebhook } from "../emulator/admission/call-webhook.ts";
import { dig } from "../emulator/objects.ts";
import { createStore } from "../emulator/store.ts";
import { runByCronJob } from "./cron-job.ts";
import { deployFunctions } from "./functions.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const until = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await turn();
};
const TIMEOUT = { timeout: 300_000 };

it(
  "a suspended CronJob starts no run; the run under way ends with its Job, or as its last one would",
  TIMEOUT,
  async () => {
    const store = createStore(storeClock);
    const stop = new AbortController();
    const runs: AbortSignal[] = [];
    const run = async (ended: AbortSignal): Promise<void> => {
      runs.push(ended);
      await new Promise((resolve) => ended.addEventListener("abort", resolve, { once: true }));
    };
    let endRuns = (): void => {};
    const clock = {
      ...systemClock,
      sleep: (ms: number) => (ms > 10_000 ? new Promise<void>((resolve) => (endRuns = resolve)) : turn()),
    };
    const running = runByCronJob(run, { store, clock, namespace: "default", stop: stop.signal });
    const cronJob = () => store.get("cronjobs.batch", "default", "zonewise-reconciler") ?? assert.fail();
    const suspend = (suspended: boolean): void => {
      const job = cronJob();
      store.update("cronjobs.batch", { ...job, spec: { ...(job["spec"] as object), suspend: suspended } });
    };
    const jobs = () => store.list("jobs.batch", "default").map(({ metadata }) => metadata);

    await until(() => runs.length === 1);
    suspend(true);
    for (let i = 0; i < 20; i++) await turn();
    assert.equal(runs[0]?.aborted, false);
    const [job] = jobs();
    assert.equal(job?.labels?.["app.kubernetes.io/name"], "zonewise-reconciler");
    store.remove("jobs.batch", "default", job?.name ?? "");
    await until(() => runs[0]?.aborted === true);
    for (let i = 0; i < 20; i++) await turn();
    assert.equal(runs.length, 1);
    suspend(false);
    await until(() => runs.length === 2);
    suspend(true);
    await turn();
    const lastJobAt = Date.parse(String(dig(cronJob(), "status", "lastScheduleTime")));
    assert.ok(systemClock.now() - lastJobAt < 60_000, "one that is suspended later has run until then");
    assert.equal(runs[1]?.aborted, false);
    endRuns();
    await until(() => runs[1]?.aborted === true);
    stop.abort();
    await running;
    assert.deepEqual(jobs(), []);
  },
);

it("functions that are scaled to none answer no webhook, until they are scaled up again", TIMEOUT, async () => {
  const store = createStore(storeClock);
  await deployFunctions(store, "default");
  const scale = async (replicas: number): Promise<void> => {
    const deployment = store.get("deployments.apps", "default", "zonewise-functions") ?? assert.fail();
    store.update("deployments.apps", { ...deployment, spec: { ...(deployment["spec"] as object), replicas } });
    await turn();
    await turn();
  };
  const service = { name: "rollout-operator", namespace: "default" };
  const webhook = { name: "x", clientConfig: { service }, sideEffects: "None", admissionReviewVersions: ["v1"] };
  const call = async (): Promise<unknown> =>
    await callWebhook(store, webhook, { uid: "u" }, async () =>
      JSON.stringify({
        kind: "AdmissionReview",
        apiVersion: "admission.k8s.io/v1",
        response: { uid: "u", allowed: true },
      }),
    );
  assert.deepEqual(await call(), { uid: "u", allowed: true });
  await scale(0);
  await assert.rejects(call(), /failed to call webhook: no endpoints available for service "rollout-operator"/);
  await scale(2);
  assert.deepEqual(await call(), { uid: "u", allowed: true });
});
