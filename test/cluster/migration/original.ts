/**
 * The original's manifests as facts, and a stand-in for its process, whose binary is not available to tests.
 *
 * Names, labels, paths, rules and policies are those of the jsonnet library and of the Helm chart of
 * grafana/rollout-operator 0.36 (operations/rollout-operator, charts/rollout-operator/templates/*-webhook.yaml).
 */
import { createServer, type Server } from "node:https";
import { json } from "node:stream/consumers";
import { listen } from "../../loopback.ts";

export const ORIGINAL = "rollout-operator";
export const SECRET = "rollout-operator-self-signed-certificate";

const STATEFUL_SETS = {
  operations: ["UPDATE"],
  apiGroups: ["apps"],
  apiVersions: ["v1"],
  resources: ["statefulsets", "statefulsets/scale"],
  scope: "Namespaced",
};
const EVICTIONS = {
  operations: ["CREATE"],
  apiGroups: [""],
  apiVersions: ["v1"],
  resources: ["pods/eviction"],
  scope: "Namespaced",
};
const BUDGETS = {
  operations: ["CREATE", "UPDATE"],
  apiGroups: ["rollout-operator.grafana.com"],
  apiVersions: ["v1"],
  resources: ["zoneawarepoddisruptionbudgets"],
  scope: "Namespaced",
};

/** Each webhook's kind of configuration, rule and side effects. */
const WEBHOOKS = {
  "prepare-downscale": ["MutatingWebhookConfiguration", STATEFUL_SETS, "NoneOnDryRun"],
  "no-downscale": ["ValidatingWebhookConfiguration", STATEFUL_SETS, "None"],
  "pod-eviction": ["ValidatingWebhookConfiguration", EVICTIONS, "None"],
  "zpdb-validation": ["ValidatingWebhookConfiguration", BUDGETS, "None"],
} as const;
const PATHS = new Set(Object.keys(WEBHOOKS).map((name) => `/admission/${name}`));

function buildConfiguration(name: keyof typeof WEBHOOKS, namespace: string, port: number): object {
  const [kind, rule, sideEffects] = WEBHOOKS[name];
  const labels = { "grafana.com/inject-rollout-operator-ca": "true", "grafana.com/namespace": namespace };
  const webhook = {
    name: `${name}-${namespace}.grafana.com`,
    clientConfig: { service: { name: ORIGINAL, namespace, path: `/admission/${name}`, port } },
    rules: [rule],
    admissionReviewVersions: ["v1"],
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
    failurePolicy: "Fail",
    sideEffects,
  };
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind,
    metadata: { name: `${name}-${namespace}`, labels },
    webhooks: [webhook],
  };
}

const list = (items: readonly object[]): object => ({ apiVersion: "v1", kind: "List", items });

/** The manifests by file name. The Service has the type that leads the API server to `port` of this machine. */
export function buildOriginal(namespace: string, port: number): Record<string, object> {
  const labels = { name: ORIGINAL };
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: ORIGINAL, namespace },
    spec: {
      type: "ExternalName",
      externalName: "localhost",
      selector: labels,
      ports: [{ name: "https", port: 443, targetPort: 8443, protocol: "TCP" }],
    },
  };
  const deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: ORIGINAL, namespace },
    spec: {
      replicas: 1,
      minReadySeconds: 10,
      selector: { matchLabels: labels },
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      template: { metadata: { labels }, spec: { containers: [{ name: ORIGINAL, image: ORIGINAL }] } },
    },
  };
  return {
    "deployment.yaml": deployment,
    "service.yaml": service,
    "webhooks.yaml": list(
      Object.keys(WEBHOOKS).map((name) => buildConfiguration(name as keyof typeof WEBHOOKS, namespace, port)),
    ),
    "pod-eviction.yaml": buildConfiguration("pod-eviction", namespace, port),
  };
}

interface Review {
  readonly request: {
    readonly uid: string;
    readonly name: string;
    readonly oldObject?: {
      readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
      readonly spec?: { readonly replicas?: number };
    };
    readonly object?: { readonly spec?: { readonly replicas?: number } };
  };
}

/** Evictions of pods whose name begins so are refused, as by a budget with maxUnavailable 0. */
export const KEPT = "kept-";

/** Refuses what this test needs it to refuse, and allows everything else. */
function judge(path: string, { request: { name, object, oldObject } }: Review): boolean {
  if (path === "/admission/pod-eviction") return !name.startsWith(KEPT);
  const isGuarded = oldObject?.metadata?.labels?.["grafana.com/no-downscale"] === "true";
  return (
    path !== "/admission/no-downscale" ||
    !isGuarded ||
    (object?.spec?.replicas ?? 0) >= (oldObject?.spec?.replicas ?? 0)
  );
}

export interface StandIn {
  readonly port: number;
  /** Ends it as the original ends: without waiting for calls that are under way. */
  readonly kill: () => void;
}

/** Answers at the original's paths, and with 404 at others, as its router does. */
export async function startStandIn(pair: { readonly cert: string; readonly key: string }): Promise<StandIn> {
  const server: Server = createServer(pair, (request, response) => {
    const path = request.url?.split("?")[0] ?? "";
    if (!PATHS.has(path)) return void response.writeHead(404).end();
    const answerReview = (review: unknown): void => {
      const { uid } = (review as Review).request;
      const allowed = judge(path, review as Review);
      const answer = { uid, allowed, ...(!allowed && { status: { code: 429, message: "the stand-in refuses" } }) };
      response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
    };
    // The API server may have given up.
    void json(request).then(answerReview, () => response.destroy());
  });
  return {
    port: await listen(server),
    kill() {
      server.close();
      server.closeAllConnections();
    },
  };
}
