/**
 * The policies of /scale alone, without a webhook, on an API server that has just started: only such a one is sure to
 * read what they need.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Admin } from "../stage/client.ts";
import { KUBECTL, type KubectlResult, runKubectl } from "../stage/kubectl.ts";
import { createManifest, deleteManifest, renderPolicies } from "../stage/manifests.ts";
import { openPlaceFor } from "../stage/place.ts";
import { until } from "../stage/until.ts";

const RESTART = join(import.meta.dirname, "../../plane/restart");
const RUN = dirname(process.env["KUBECONFIG"] ?? "");
const NO_DOWNSCALE = "grafana.com/no-downscale";
const KINDS = { statefulsets: "StatefulSet", deployments: "Deployment", replicasets: "ReplicaSet" } as const;

/** An API server takes note of bindings every second. */
const NOTED_MS = 3000;
/** For so long nobody may have changed an object that is at rest. */
const QUIET_MS = 2000;

if (!existsSync(join(RUN, "kube-apiserver.pid"))) {
  console.log(
    `KUBECONFIG names no control plane of test/plane/up (${KUBECTL}): the policies of /scale are not tried alone`,
  );
} else {
  test("the policies of /scale refuse by themselves, and nothing by a label of yesterday", async (t) => {
    await promisify(execFile)(RESTART, ["kube-apiserver", "0"], { env: { ...process.env, RUN } });
    const place = await openPlaceFor(t);
    const { admin, namespace } = place;
    const kubectl = (...args: readonly string[]): Promise<KubectlResult> => place.kubectl(args);
    const policies = (await renderPolicies(namespace)).filter(({ metadata }) => metadata.name.includes("-scale."));
    const bindings = policies.filter(({ kind }) => kind.endsWith("Binding"));
    assert.equal(bindings.length, 3);
    place.defer(async () => {
      for (const policy of policies) await deleteManifest(admin, policy);
    });
    for (const policy of policies) await createManifest(admin, policy);
    const targets = Object.keys(KINDS).flatMap((plural) =>
      ["free", "kept"].map((name) => ({ namespace, plural, name })),
    );
    await Promise.all(targets.map((target) => create(admin, target)));

    for (const plural of Object.keys(KINDS))
      await t.test(plural, async () => {
        const scale = (name: string, to: number, ...more: readonly string[]): Promise<KubectlResult> =>
          kubectl("scale", plural, name, `--replicas=${to}`, ...more);
        for (const to of [2, 0]) {
          // A version that the API server does not know yet is left to the webhook.
          await until(
            "the policy knows the object",
            async () => (await scale("kept", to, "--dry-run=server")).code !== 0,
          );
          const { text } = await scale("kept", to);
          assert.match(text, new RegExp(`ValidatingAdmissionPolicy 'no-downscale-${plural}-scale.${namespace}'`));
          const why = `downscale of ${plural}/kept in ${namespace} from 3 to ${to} replicas is not allowed because it has the label '${NO_DOWNSCALE}=true'`;
          assert.ok(text.includes(why), text);
        }
        const allowed = [
          await scale("kept", 4),
          await scale("free", 1),
          await scale("free", 0),
          await scale("free", 3),
        ];
        for (const { code, text } of allowed) assert.equal(code, 0, text);
      });

    await t.test("only who may list the parameters may bind the policies to them", async () => {
      const name = `zonewise-installer-${namespace}`;
      const rules = [
        {
          apiGroups: ["admissionregistration.k8s.io"],
          resources: ["validatingadmissionpolicybindings"],
          verbs: ["create"],
        },
      ];
      const role = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name }, rules };
      const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name };
      const subjects = [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name }];
      const granted = [role, { ...role, kind: "ClusterRoleBinding", rules: undefined, roleRef, subjects }];
      t.after(async () => {
        for (const manifest of granted) await deleteManifest(admin, manifest);
      });
      for (const manifest of granted) await createManifest(admin, manifest);
      const another = bindings.map((one) => ({
        ...one,
        metadata: { ...one.metadata, name: `another-${one.metadata.name}` },
      }));
      const bind = (): Promise<KubectlResult> =>
        runKubectl(["create", "--dry-run=server", `--as=${name}`, "-f", "-"], {
          apiVersion: "v1",
          kind: "List",
          items: another,
        });
      await until("the right to bind is known", async () => !/cannot create resource/.test((await bind()).text));
      assert.match((await bind()).text, /does not have "list" permission on the object referenced by paramRef/);
      const more = { apiGroups: ["apps"], resources: Object.keys(KINDS), verbs: ["list"] };
      await admin.call("PATCH", `/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`, { rules: [...rules, more] });
      await until("the policies are bound", async () => (await bind()).code === 0);
    });

    await t.test(
      "an API server that was without the bindings allows by the label of now, whatever it remembers",
      async () => {
        for (const binding of bindings) await deleteManifest(admin, binding);
        await sleep(NOTED_MS);
        for (const plural of Object.keys(KINDS))
          assert.equal((await kubectl("label", plural, "kept", `${NO_DOWNSCALE}-`)).code, 0);
        for (const binding of bindings) await createManifest(admin, binding);
        await sleep(NOTED_MS);
        for (const plural of Object.keys(KINDS)) {
          const { code, text } = await kubectl("scale", plural, "kept", "--replicas=1");
          assert.equal(code, 0, text);
        }
      },
    );
  });
}

interface Target {
  readonly namespace: string;
  readonly plural: string;
  readonly name: string;
}

/**
 * Creates an object of three pods and waits until nobody changes it any more: only a version that is known is judged.
 */
async function create(admin: Admin, { namespace, plural, name }: Target): Promise<void> {
  const labels = { app: `${plural}-${name}` };
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "x" }] } };
  const path = `/apis/apps/v1/namespaces/${namespace}/${plural}`;
  await admin.call("POST", path, {
    kind: KINDS[plural as keyof typeof KINDS],
    metadata: { name, labels: name === "kept" ? { [NO_DOWNSCALE]: "true" } : {} },
    spec: {
      replicas: 3,
      selector: { matchLabels: labels },
      template,
      ...(plural === "statefulsets" && { serviceName: name }),
    },
  });
  let last = "";
  let since = 0;
  await until(`${name} is ready, and nobody changes it`, async () => {
    const { metadata, status } = await admin.call<{
      metadata: { resourceVersion: string };
      status?: { readyReplicas?: number };
    }>("GET", `${path}/${name}`);
    if (metadata.resourceVersion !== last || status?.readyReplicas !== 3) since = performance.now();
    last = metadata.resourceVersion;
    return performance.now() - since > QUIET_MS;
  });
}
