/** The downscale webhooks for a namespace of the cluster in KUBECONFIG, pods with scripted responses, and kubectl. */
import type { TestContext } from "node:test";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { type Admin, remove } from "../stage/client.ts";
import { serveWebhooks } from "../stage/eviction-stage.ts";
import { enforcePolicies } from "../stage/manifests.ts";
import { type PodServer, startPodServer } from "../stage/pods.ts";
import { openStage, type OpenStage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

export interface WebhookStage extends OpenStage {
  readonly pods: PodServer;
  readonly get: (name: string) => Promise<StatefulSet>;
  /** As if the functions had been scaled to 0: from here on nobody answers. */
  readonly stopFunctions: () => Promise<void>;
}

/** Closes with the test. */
export async function openWebhookStage(
  t: TestContext,
  env: Readonly<Record<string, string>> = {},
  { noDownscale = "policy" }: { readonly noDownscale?: "webhook" | "policy" | "both" } = {},
): Promise<WebhookStage> {
  const stage = await openStage((text) => t.diagnostic(text));
  t.after(() => stage.close());
  const { admin, namespace } = stage;
  const pods = await startPodServer();
  stage.defer(pods.close);
  // Who comes from the original may have registered whole objects, too.
  const more = noDownscale === "policy" ? [] : ["statefulsets", "deployments", "replicasets"];
  const webhooks = await serveWebhooks(stage, 1, {
    hooks: ["prepare-downscale", "zpdb-validation"],
    optional: { hooks: ["no-downscale"], more },
    env: { ...pods.env, ...env },
  });
  if (noDownscale !== "webhook") {
    await enforcePolicies(stage);
    await untilPolicies(admin, namespace);
  }
  return {
    ...stage,
    pods,
    stopFunctions: webhooks.killOne,
    get: (name) => admin.call("GET", `/apis/apps/v1/namespaces/${namespace}/statefulsets/${name}`),
  };
}

/**
 * Resolves once the namespace's no-downscale policy refuses: the API server takes a policy into account a moment after it
 * has stored it.
 */
async function untilPolicies(admin: Admin, namespace: string): Promise<void> {
  const sets = `/apis/apps/v1/namespaces/${namespace}/replicasets`;
  const labels = { app: "probe" };
  const spec = {
    replicas: 1,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "x" }] } },
  };
  await admin.call("POST", sets, { metadata: { name: "probe", labels: { "grafana.com/no-downscale": "true" } }, spec });
  await until("the policy refuses", () => isRefused(admin, `${sets}/probe`));
  await remove(admin, `${sets}/probe`);
}

const isRefused = (admin: Admin, path: string): Promise<boolean> =>
  admin.call("PATCH", `${path}?dryRun=All`, { spec: { replicas: 0 } }).then(
    () => false,
    (error: unknown) => /denied (the )?request/.test(String(error)),
  );
