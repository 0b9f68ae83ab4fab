/** The API server takes a policy into account a moment after it has stored it. */
import { type Admin, remove } from "../stage/client.ts";
import { until } from "../stage/until.ts";

/** Resolves once the namespace's no-downscale policy refuses. */
export async function untilPolicies(admin: Admin, namespace: string): Promise<void> {
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
