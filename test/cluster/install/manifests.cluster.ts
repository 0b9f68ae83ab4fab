/** The manifests that users apply, as kustomize builds them. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { connectAdmin, remove } from "../stage/client.ts";
import { type Manifest, pathOfManifest, renderManifests } from "../stage/manifests.ts";

const NAMESPACE = "cell-a-1";

/** Returns the values of a field at any depth. */
function valuesOf(value: unknown, field: string): unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => [
    ...(key === field ? [child] : []),
    ...valuesOf(child, field),
  ]);
}

/** The failure policies of the webhook configurations, by their names without the namespace. */
const failuresOf = (manifests: readonly Manifest[]): Record<string, unknown> =>
  Object.fromEntries(
    manifests
      .filter(({ kind }) => kind.endsWith("WebhookConfiguration"))
      .map((one) => [one.metadata.name.replace(`-${NAMESPACE}`, ""), valuesOf(one, "failurePolicy")[0]] as const)
      .toSorted(([a], [b]) => a.localeCompare(b)),
  );

const kindsOf = (manifests: readonly Manifest[], kind: string): string[] =>
  manifests.filter((one) => one.kind === kind).map(({ metadata }) => metadata.name);

describe("the manifests", () => {
  for (const folder of ["infra/manifests/complete", "knative", "knative/events"]) {
    it(`${folder}: the API server accepts every object and knows every field`, async (t) => {
      const admin = await connectAdmin(process.env["KUBECONFIG"]);
      const namespace = `zw-manifests-${randomBytes(3).toString("hex")}`;
      await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
      t.after(async () => {
        await remove(admin, `/api/v1/namespaces/${namespace}`);
        admin.close();
      });
      for (const manifest of await renderManifests(namespace, { folder })) {
        const dryRun = `${pathOfManifest(manifest)}?dryRun=All&fieldValidation=Strict`;
        const result = await admin.call("POST", dryRun, manifest).then(() => "accepted", String);
        // Knative may be missing; objects that all installations share may exist.
        if (result.includes("404 page not found") || result.includes("AlreadyExists")) continue;
        assert.equal(result, "accepted", `${manifest.kind} ${manifest.metadata.name}`);
      }
    });
  }

  for (const folder of ["infra/manifests/complete", "knative", "knative/events"]) {
    it(`${folder}: all objects are in the namespace that is set in one place`, async () => {
      const manifests = await renderManifests(NAMESPACE, { folder });
      const named = ["namespace", "grafana.com/namespace", "kubernetes.io/metadata.name"].flatMap((field) =>
        valuesOf(manifests, field),
      );
      assert.ok(named.length > 0);
      assert.deepEqual([...new Set(named)], [NAMESPACE]);
      assert.ok(kindsOf(manifests, "ConfigMap").length === 0, "the source of the namespace is not applied");
    });
  }

  it("webhook configurations are named after the namespace, so that installations do not collide", async () => {
    const manifests = await renderManifests(NAMESPACE);
    const hooks = ["no-downscale", "phased-validation", "zpdb-validation"].map((name) => `${name}-${NAMESPACE}`);
    assert.deepEqual(kindsOf(manifests, "ValidatingWebhookConfiguration").toSorted(), hooks);
    const policies = ["-deployments-scale", "-replicasets-scale", "-statefulsets-scale", ""].map(
      (of) => `no-downscale${of}.${NAMESPACE}`,
    );
    for (const kind of ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"])
      assert.deepEqual(kindsOf(manifests, kind).toSorted(), policies);
    assert.deepEqual(manifests.flatMap((one) => valuesOf(one, "policyName")).toSorted(), policies);
    const mutating = ["phased-defaults", "pod-eviction", "prepare-downscale", "raise-partition"].map(
      (name) => `${name}-${NAMESPACE}`,
    );
    assert.deepEqual(kindsOf(manifests, "MutatingWebhookConfiguration").toSorted(), mutating);
    const entries = manifests.flatMap((one) => valuesOf(one, "webhooks")).flat() as { name: string }[];
    for (const { name } of entries) assert.match(name, new RegExp(`^[a-z-]+-${NAMESPACE}\\.grafana\\.com$`));
    // Each installation has its own, so that removing one does not affect another.
    const clusterWide = ["ca", "watch"].map((right) => `zonewise-webhook-${right}.${NAMESPACE}`);
    assert.deepEqual(kindsOf(manifests, "ClusterRole").toSorted(), clusterWide);
    assert.deepEqual(kindsOf(manifests, "ClusterRoleBinding").toSorted(), clusterWide);
    assert.deepEqual(
      (manifests.flatMap((one) => (one.kind === "ClusterRole" ? valuesOf(one, "resourceNames") : [])) as string[][])
        .flat()
        .toSorted(),
      // The webhook on deletions is opt-in; the right to give it its CA is there.
      [...hooks, ...mutating, `pod-deletion-${NAMESPACE}`].toSorted(),
    );
    assert.deepEqual(kindsOf(manifests, "CustomResourceDefinition"), []);
    const bound = new Set(
      manifests.flatMap((one) => valuesOf(one, "roleRef")).map((ref) => (ref as { name: string }).name),
    );
    for (const name of clusterWide) assert.ok(bound.has(name), name);
    assert.deepEqual(failuresOf(manifests), {
      "no-downscale": "Fail",
      "phased-defaults": "Ignore",
      "phased-validation": "Ignore",
      "pod-eviction": "Fail",
      "prepare-downscale": "Fail",
      "raise-partition": "Ignore",
      "zpdb-validation": "Ignore",
    });
  });

  it("with the component, all webhooks fail open", async () => {
    const manifests = await renderManifests(NAMESPACE, { components: ["infra/manifests/webhooks/ignore"] });
    const policies = Object.values(failuresOf(manifests));
    assert.deepEqual(
      policies,
      Array.from({ length: 7 }, () => "Ignore"),
    );
  });

  it("network policies are refused until the API server's range is filled in", async () => {
    const admin = await connectAdmin(process.env["KUBECONFIG"]);
    const components = ["infra/manifests/network-policy", "infra/manifests/namespace"];
    const manifests = (await renderManifests("default", { folder: "infra/manifests/functions", components })).filter(
      ({ kind }) => kind === "NetworkPolicy",
    );
    assert.equal(manifests.length, 4);
    for (const manifest of manifests) {
      const dryRun = `${pathOfManifest(manifest)}?dryRun=All&fieldValidation=Strict`;
      await assert.rejects(admin.call("POST", dryRun, manifest), /API_SERVER_CIDR/);
      await admin.call(
        "POST",
        dryRun,
        JSON.parse(JSON.stringify(manifest).replaceAll("API_SERVER_CIDR", "10.0.0.0/28")),
      );
    }
    admin.close();
  });

  it("the network policies' values are set in one place", async () => {
    const components = ["infra/manifests/network-policy", "infra/manifests/namespace"];
    const edit = (text: string): string =>
      text.replace(" API_SERVER_CIDR ", " 10.0.0.0/28 ").replace("monitoring: monitoring", "monitoring: watch");
    const manifests = await renderManifests(NAMESPACE, {
      folder: "infra/manifests/functions",
      components,
      edit: { "infra/manifests/network-policy/source.yaml": edit },
    });
    assert.deepEqual(kindsOf(manifests, "ConfigMap"), []);
    const policies = manifests.filter(({ kind }) => kind === "NetworkPolicy");
    const [ranges, namespaces] = ["cidr", "kubernetes.io/metadata.name"].map((field) =>
      policies.flatMap((one) => valuesOf(one, field)),
    );
    assert.deepEqual([...new Set(ranges)], ["10.0.0.0/28"]);
    assert.deepEqual([...new Set(namespaces)].toSorted(), ["kube-system", "watch"]);
    assert.deepEqual([...new Set(policies.map(({ metadata }) => metadata.namespace))], [NAMESPACE]);
  });

  it("without webhooks there is only the reconciler", async () => {
    const kinds = (await renderManifests(NAMESPACE, { folder: "infra/manifests/reconciler" })).map(({ kind }) => kind);
    assert.deepEqual(kinds.toSorted(), ["CronJob", "Role", "RoleBinding", "ServiceAccount"]);
  });

  it("on Knative there is no Deployment", async () => {
    const manifests = await renderManifests(NAMESPACE, { folder: "knative" });
    assert.deepEqual([...kindsOf(manifests, "Deployment"), ...kindsOf(manifests, "PodDisruptionBudget")], []);
    const own = manifests.filter(
      ({ apiVersion, kind }) => apiVersion === "serving.knative.dev/v1" && kind === "Service",
    );
    assert.deepEqual(
      own
        .flatMap((one) => valuesOf(one, "env"))
        .flat()
        .filter((one) => (one as { name: string }).name === "KUBERNETES_NAMESPACE"),
      own.map(() => ({ name: "KUBERNETES_NAMESPACE", value: NAMESPACE })),
    );
  });
});
