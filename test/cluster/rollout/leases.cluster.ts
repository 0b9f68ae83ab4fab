/**
 * The reconciler of all namespaces, with its ServiceAccount's token: it can write its own Leases, and no
 * others.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import { systemClock } from "../../../infra/clock.ts";
import { connectCluster } from "../../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../../infra/kubernetes/connection.ts";
import { acquireLease } from "../../../infra/kubernetes/lease.ts";
import { applyRbac, writeKubeconfig } from "../stage/access.ts";
import { connectAdmin } from "../stage/client.ts";
import { createManifest, deleteManifest, type Manifest } from "../stage/manifests.ts";
import { openPlaceFor } from "../stage/place.ts";
import { until } from "../stage/until.ts";

const FOLDER = new URL("../../../infra/manifests/all-namespaces/", import.meta.url);

/**
 * The overlay's cluster-scoped objects for the ServiceAccount in `namespace`, named after it so that tests do
 * not collide.
 */
async function readOverlay(file: string, namespace: string): Promise<Manifest[]> {
  const documents = parseAllDocuments(await readFile(new URL(file, FOLDER), "utf8"));
  return documents.map((document) => {
    const json = JSON.stringify(document.toJS())
      .replaceAll("zonewise-reconciler-leases", namespace)
      .replaceAll("serviceaccount:zonewise:", `serviceaccount:${namespace}:`)
      .replaceAll('"namespace":"zonewise"', `"namespace":"${namespace}"`);
    const { roleRef, ...manifest } = JSON.parse(json) as Manifest & { roleRef?: object };
    return { ...manifest, metadata: { name: namespace }, ...(roleRef && { roleRef: { ...roleRef, name: namespace } }) };
  });
}

test("the reconciler of all namespaces cannot write other components' Leases, although its RBAC allows it", async (t) => {
  const place = await openPlaceFor(t);
  const { admin, namespace } = place;
  const rbac = await readOverlay("cluster-rbac.yaml", namespace);
  const policy = await readOverlay("lease-policy.yaml", namespace);
  place.defer(async () => {
    for (const manifest of [...rbac, ...policy]) await deleteManifest(admin, manifest);
  });
  await applyRbac(admin, namespace);
  for (const manifest of rbac) await createManifest(admin, manifest);
  const kubeconfig = await writeKubeconfig(place);
  const reconciler = await connectAdmin(kubeconfig);
  place.defer(reconciler.close);
  const path = (inNamespace: string): string => `/apis/coordination.k8s.io/v1/namespaces/${inNamespace}/leases`;
  const lease = (name: string): object => ({ metadata: { name }, spec: { holderIdentity: "zonewise" } });
  /** Creates a Lease as a dry run, so that a running component's Lease is not touched. */
  const take = (name: string, where: string): Promise<string> =>
    reconciler.call("POST", `${path(where)}?dryRun=All`, lease(name)).then(
      () => "taken",
      (error: unknown) => String(error),
    );

  await admin.call("POST", path(namespace), lease("kube-scheduler"));
  const component = await admin.call<object>("GET", `${path(namespace)}/kube-scheduler`);
  // API servers know new bindings after a moment.
  await until("by RBAC alone it could", async () =>
    /^taken$|AlreadyExists/.test(await take("kube-controller-manager", "kube-system")),
  );
  await reconciler.call("PUT", `${path(namespace)}/kube-scheduler?dryRun=All`, component);

  for (const manifest of policy) await createManifest(admin, manifest);
  const denied = /ValidatingAdmissionPolicy .* denied request: zonewise-reconciler may write only Leases/;
  // API servers enforce a new policy after a moment.
  await until("the policy is enforced", async () => denied.test(await take("kube-controller-manager", "kube-system")));
  await assert.rejects(reconciler.call("PUT", `${path(namespace)}/kube-scheduler`, component), denied);
  await admin.call("PUT", `${path(namespace)}/kube-scheduler`, component);

  assert.equal(await take("zonewise-budget-7", "default"), "taken");
  const connection = await loadConnection({ kubeconfig });
  place.defer(() => connection.close());
  const options = { namespace, name: "zonewise-reconciler", identity: "a", durationMs: 15_000 };
  const cluster = connectCluster(connection, { timeoutMs: 60_000, clock: systemClock });
  const held = await acquireLease({ cluster, clock: systemClock }, options, AbortSignal.timeout(180_000));
  assert.ok(held);
  await held.release();
});
