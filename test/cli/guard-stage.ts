/** The eviction webhook behind the API server of a stage, as the manifests register it. */
import type { TestContext } from "node:test";
import { createPodEviction } from "../../functions/eviction/pod-eviction.ts";
import { systemClock } from "../../infra/clock.ts";
import { createMetrics } from "../../infra/metrics/metrics.ts";
import { composeBudgets } from "../../reconciler/budget/act/compose.ts";
import { certify } from "../certify.ts";
import { define } from "../demo/definitions.ts";
import { serve } from "../functions/serve-one.ts";
import { keepingLog } from "../functions/stage.ts";
import { setBudgetStage, writeBudget } from "../reconciler/budget-stage.ts";
import type { Stage } from "../reconciler/stage.ts";
import { openTerminal } from "./stage.ts";

export const HOOKS = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const CONFIGURATION = "pod-eviction-default";

export const issue = () => certify("rollout-operator.default.svc");

/** Another caBundle, policy or selector than that of the manifests. */
interface GuardTraits {
  readonly caPem?: string;
  readonly webhook?: object;
}

/** Serves and registers it; `close` ends it. */
export async function guardEvictions(stage: Stage) {
  const { store } = stage.emulator;
  const { caPem, certPem, keyPem } = await issue();
  const { cluster } = stage.connect();
  const metrics = createMetrics().budgets;
  // The API server's deadlines are real time, its objects' times the stage's.
  const clock = { ...systemClock, now: stage.clock.now };
  const { reserver } = composeBudgets({ cluster, clock, log: keepingLog().log, identity: "webhook" });
  const webhook = createPodEviction({ reserver, metrics });
  const { server, port } = await serve(webhook, { cert: certPem, key: keyPem });
  const service = { name: "rollout-operator", namespace: "default" };
  const setService = (spec: object): void => {
    if (store.get("services", "default", service.name)) store.remove("services", "default", service.name);
    store.create("services", { apiVersion: "v1", kind: "Service", metadata: service, spec });
  };
  const register = ({ caPem: ca = caPem, webhook: traits = {} }: GuardTraits = {}): void => {
    if (store.get(HOOKS, undefined, CONFIGURATION)) store.remove(HOOKS, undefined, CONFIGURATION);
    const path = "/admission/mutate-pod-eviction";
    const entry = {
      name: `${CONFIGURATION}.grafana.com`,
      admissionReviewVersions: ["v1"],
      clientConfig: { service: { ...service, port, path }, caBundle: Buffer.from(ca).toString("base64") },
      failurePolicy: "Fail",
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "default" } },
      rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods/eviction"] }],
      sideEffects: "NoneOnDryRun",
      timeoutSeconds: 10,
    };
    store.create(HOOKS, {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata: { name: CONFIGURATION, labels: { "grafana.com/inject-rollout-operator-ca": "true" } },
      webhooks: [{ ...entry, ...traits }],
    });
  };
  setService({ type: "ExternalName", externalName: "127.0.0.1" });
  register();
  return {
    register,
    setService,
    unregister: () => void store.remove(HOOKS, undefined, CONFIGURATION),
    close: () => (server.closeAllConnections(), server.close()),
  };
}

/** A terminal beside three zones under a budget, or under none, and the eviction webhook. Nothing ticks. */
export async function openGuarded(t: TestContext, { budget = {}, definitions = [] }: GuardedTraits = {}) {
  const stage = await setBudgetStage();
  await define(stage.emulator.store, definitions);
  if (budget) writeBudget(stage, budget);
  const guard = await guardEvictions(stage);
  t.after(async () => {
    guard.close();
    await stage.close();
  });
  await stage.time.advance(1000);
  return { stage, guard, ...(await openTerminal(t, stage)) };
}

interface GuardedTraits {
  readonly budget?: object | null;
  readonly definitions?: readonly string[];
}
