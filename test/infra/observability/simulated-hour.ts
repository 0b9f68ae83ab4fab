/**
 * Reconciler and functions over one embedded cluster, in simulated time that is scraped each minute; and the faults of
 * their alerts.
 */
import assert from "node:assert/strict";
import { composeFunctions } from "../../../functions/compose.ts";
import { compose as composeReconciler } from "../../../reconciler/run/compose.ts";
import { run } from "../../../reconciler/run/run.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { startRecording } from "./recording.ts";

export const NAMESPACE = "default";
const SETS = "statefulsets.apps";
const HOOK_METADATA = {
  name: "pod-eviction",
  labels: { "grafana.com/namespace": NAMESPACE, "grafana.com/inject-rollout-operator-ca": "true" },
};
/** Milliseconds of simulated time between two looks at it. */
const STEP_MS = 5000;
/** Calls of a test to the API server in one step. */
const ROUND_TRIPS = 10;

/** A webhook configuration of ours. */
export const hookThat = (failurePolicy: string, metadata: object = HOOK_METADATA) => ({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "MutatingWebhookConfiguration",
  metadata,
  webhooks: [
    {
      name: "pod-eviction-default.grafana.com",
      failurePolicy,
      sideEffects: "NoneOnDryRun",
      admissionReviewVersions: ["v1"],
      clientConfig: { service: { name: "rollout-operator", namespace: NAMESPACE, port: 443 } },
      rules: [],
    },
  ],
});

/** Reconciler and functions over the stage's cluster and by its clock. */
export async function startProcesses(stage: Stage, kubeconfig: string) {
  const env = { KUBECONFIG: kubeconfig, KUBERNETES_NAMESPACE: NAMESPACE, LOG_LEVEL: "error", LEASE_DURATION: "50s" };
  const functions = await composeFunctions(env, stage.clock);
  const eviction = functions.webhooks.find(({ name }) => name === "podEviction") ?? assert.fail("no webhook");

  /** Runs as a CronJob starts them, until the signal fires. */
  async function reconcile(stop: AbortSignal, more: Readonly<Record<string, string>> = {}): Promise<void> {
    const { run: input } = await composeReconciler({ ...env, ...more }, stage.clock);
    while (!stop.aborted) await run({ ...input, stop });
  }

  /** Deletes the pod if its budget allows it. */
  async function evict(name: string): Promise<void> {
    const kind = { group: "policy", version: "v1", kind: "Eviction" };
    const request = {
      uid: name,
      operation: "CREATE",
      subResource: "eviction",
      dryRun: false,
      namespace: NAMESPACE,
      name,
      kind,
    };
    const context = {
      path: "/admission/mutate-pod-eviction",
      signal: new AbortController().signal,
      log: functions.log,
    };
    const review = {
      ...request,
      resource: { group: "", version: "v1", resource: "pods" },
      object: { ...kind, metadata: { name } },
    };
    const deadlineAt = stage.clock.monotonic() + 60_000;
    const { allowed } = await eviction
      .handle(review, { ...context, deadlineAt })
      .catch((error: unknown) => eviction.onFault(error, review));
    if (allowed) stage.emulator.store.remove("pods", NAMESPACE, name);
  }
  return { scrape: functions.metrics.render, reconcile, evict };
}

/** Lets the pods of a template crash. */
export function crashTemplate({ emulator: { store } }: Stage, group: string): void {
  for (const zone of ["a", "b", "c"]) {
    const set = store.get(SETS, NAMESPACE, `${group}-zone-${zone}`) ?? assert.fail(`no ${group}`);
    const { template, ...spec } = set["spec"] as { template: { metadata: object } };
    const metadata = { ...template.metadata, annotations: { "sim/crash": "true" } };
    store.update(SETS, { ...set, spec: { ...spec, template: { ...template, metadata } } });
  }
}

/** Gives one zone an update strategy that fails its group. */
export function breakStrategy({ emulator: { store } }: Stage, zone: string): void {
  const set = store.get(SETS, NAMESPACE, zone) ?? assert.fail(`no ${zone}`);
  store.update(SETS, { ...set, spec: { ...(set["spec"] as object), updateStrategy: { type: "RollingUpdate" } } });
}

/** Time that passes, and what is scraped meanwhile. */
export function startTime(stage: Stage, scrape: () => Promise<string>) {
  const target = { job: `${NAMESPACE}/rollout-operator`, namespace: NAMESPACE, pod: "functions-0" };
  // The first scrape comes after a minute.
  const recording = startRecording(target, stage.time.now() / 1000 + 60);
  const { cluster } = stage.connect();

  /**
   * A step ends once several calls have gone to the API server and back, so that those of others have, too: they have
   * deadlines in this time.
   */
  async function step(): Promise<void> {
    await stage.time.advance(STEP_MS);
    for (let i = 0; i < ROUND_TRIPS; i++)
      await cluster.get({ group: "", version: "v1", plural: "namespaces" }, { name: NAMESPACE });
  }
  /** The time goes on until the work is done. */
  async function during<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const over = (): void => void (isOver = true);
    void work.then(over, over);
    while (!isOver) await step();
    return await work;
  }
  return {
    recording,
    during,
    async minute(): Promise<void> {
      for (let passed = 0; passed < 60_000; passed += STEP_MS) await step();
      recording.add(await during(scrape()));
    },
  };
}
