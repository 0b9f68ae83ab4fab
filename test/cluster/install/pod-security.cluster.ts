/** A namespace may enforce the strictest of the Pod Security Standards, `restricted`: every pod of ours is admitted. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, it, type TestContext } from "node:test";
import { collect } from "../../infra/manifests.ts";
import { type Admin, connectAdmin, remove } from "../stage/client.ts";
import type { Manifest } from "../stage/manifests.ts";
import { until } from "../stage/until.ts";
import { OVERLAYS, renderOverlay } from "./overlays.ts";

interface Template {
  readonly metadata?: object;
  readonly spec: { readonly containers: readonly object[]; readonly serviceAccountName?: string };
}

/** The templates of pods. The API server drops the fields that only Knative knows. */
const templatesOf = (manifests: readonly Manifest[]): Template[] =>
  collect(manifests, ({ template }) =>
    (template as Partial<Template> | undefined)?.spec?.containers ? (template as Template) : undefined,
  );

const makesPods = ({ apiVersion, kind }: Manifest): boolean =>
  ["Deployment", "CronJob"].includes(kind) || (kind === "Service" && apiVersion.startsWith("serving.knative.dev/"));

async function openNamespace(t: TestContext): Promise<{ admin: Admin; namespace: string }> {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  const namespace = `zw-restricted-${randomBytes(3).toString("hex")}`;
  const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
  await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace, labels } });
  t.after(async () => {
    await remove(admin, `/api/v1/namespaces/${namespace}`);
    admin.close();
  });
  // Until then, a pod is refused for that.
  const account = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
  await until("the namespace has its ServiceAccount", async () => !!(await admin.call("GET", account)));
  return { admin, namespace };
}

const dryRun = (admin: Admin, namespace: string, { metadata, spec }: Template): Promise<string> =>
  admin
    .call("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, { metadata: { ...metadata, name: "a-pod" }, spec })
    .then(() => "admitted", String);

describe("a namespace that enforces restricted", () => {
  for (const [name, rendering] of OVERLAYS)
    it(`admits every pod of ${name}`, async (t) => {
      const { admin, namespace } = await openNamespace(t);
      const manifests = await renderOverlay(namespace, rendering);
      const templates = templatesOf(manifests);
      assert.equal(templates.length, manifests.filter(makesPods).length);
      for (const account of new Set(templates.map(({ spec }) => spec.serviceAccountName)))
        await admin.call("POST", `/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: account } });
      for (const template of templates)
        assert.equal(await dryRun(admin, namespace, template), "admitted", JSON.stringify(template));
    });

  it("refuses a pod of which nothing is said", async (t) => {
    const { admin, namespace } = await openNamespace(t);
    const refused = await dryRun(admin, namespace, { spec: { containers: [{ name: "c", image: "x" }] } });
    assert.match(refused, /violates PodSecurity \\"restricted/);
  });
});
