/**
 * What `kubectl apply -k` does the first time, the second time, with another image, and beside another installation, and
 * what `kubectl delete -k` leaves behind.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { type TestContext, describe, it } from "node:test";
import { collect } from "../../infra/manifests.ts";
import { runCommands } from "../migration/steps.ts";
import { define } from "../stage/definitions.ts";
import { type KubectlResult, runKubectl } from "../stage/kubectl.ts";
import {
  type Manifest,
  type Rendering,
  WITH_STATUS_PAGE,
  pathOfManifest,
  renderManifests,
} from "../stage/manifests.ts";
import { type Place, openPlaceFor } from "../stage/place.ts";
import { until } from "../stage/until.ts";

const COMPLETE = "infra/manifests/complete";

/** By what tests call them. Knative's own kinds are among the objects, and Knative need not be there. */
const OVERLAYS: readonly (readonly [string, Rendering])[] = [
  [COMPLETE, { folder: COMPLETE }],
  [`${COMPLETE} failing open`, { folder: COMPLETE, components: ["infra/manifests/webhooks/ignore"] }],
  [`${COMPLETE} with the status page`, { folder: COMPLETE, ...WITH_STATUS_PAGE }],
  ["infra/manifests/reconciler", { folder: "infra/manifests/reconciler", components: ["infra/manifests/namespace"] }],
  ["infra/manifests/all-namespaces", { folder: "infra/manifests/all-namespaces" }],
  ["infra/manifests/crds", { folder: "infra/manifests/crds" }],
  ["infra/manifests/pod-deletion-policy", { folder: "infra/manifests/pod-deletion-policy" }],
  ["infra/manifests/pod-deletion-webhook", { folder: "infra/manifests/pod-deletion-webhook" }],
  ["infra/manifests/replicas-policy", { folder: "infra/manifests/replicas-policy" }],
  ["infra/manifests/reconciler-policy", { folder: "infra/manifests/reconciler-policy" }],
  ["infra/manifests/phased-policy", { folder: "infra/manifests/phased-policy" }],
  ["infra/manifests/migration", { folder: "infra/manifests/migration" }],
  ["infra/manifests/migration/webhooks", { folder: "infra/manifests/migration/webhooks" }],
  ["knative", { folder: "knative" }],
  ["knative/events", { folder: "knative/events" }],
];

/** Renders one of them for a namespace; the one for all namespaces names its own. */
async function renderOverlay(namespace: string, { edit, ...rendering }: Rendering): Promise<Manifest[]> {
  const setNamespace = (text: string): string => text.replace("namespace: zonewise\n", `namespace: ${namespace}\n`);
  return await renderManifests(namespace, {
    ...rendering,
    edit: { "infra/manifests/all-namespaces/kustomization.yaml": setNamespace, ...edit },
  });
}

/** The strictest of the Pod Security Standards. */
const RESTRICTED = { "pod-security.kubernetes.io/enforce": "restricted" };
const imageOf = (tag: string): Rendering => ({
  edit: { [`${COMPLETE}/kustomization.yaml`]: (text) => text.replace("newTag: latest", `newTag: ${tag}`) },
});

const withManifests = (args: readonly string[], items: readonly Manifest[]): Promise<KubectlResult> =>
  runKubectl([...args, "-f", "-"], { apiVersion: "v1", kind: "List", items });

async function succeed(result: Promise<KubectlResult>): Promise<string> {
  const { code, text } = await result;
  assert.equal(code, 0, text);
  return text;
}

const isHook = ({ kind }: Manifest): boolean => kind.endsWith("WebhookConfiguration");

/** A place in which everything that was applied ends with the test, webhooks first. */
async function openApplied(t: TestContext): Promise<Place & { apply: (all: readonly Manifest[]) => Promise<string> }> {
  const place = await openPlaceFor(t, RESTRICTED);
  return {
    ...place,
    async apply(all) {
      const own = all.filter(({ kind }) => kind !== "CustomResourceDefinition");
      const order = own.toSorted((a, b) => Number(isHook(b)) - Number(isHook(a)));
      place.defer(() => withManifests(["delete", "--ignore-not-found", "--wait=false"], order));
      return await succeed(withManifests(["apply"], all));
    },
  };
}

/**
 * A second apply, and `kubectl diff`, find nothing to do. A PodDisruptionBudget's selector is a field that is replaced as
 * a whole: kubectl sends it each time, and nothing changes.
 */
async function assertUnchanged(manifests: readonly Manifest[]): Promise<void> {
  const lines = (await succeed(withManifests(["apply"], manifests))).split("\n");
  const changed = lines.filter(
    (line) => line !== "" && !line.endsWith(" unchanged") && !line.startsWith("poddisruptionbudget.policy/"),
  );
  assert.deepEqual(changed, []);
  let diff = "";
  // A status that changes between its two reads is a difference, too.
  await until(
    () => `kubectl diff finds none: ${diff}`,
    async () => {
      const { code, text } = await withManifests(["diff"], manifests);
      diff = text;
      return code === 0;
    },
  );
}

interface Template {
  readonly metadata?: object;
  readonly spec: { readonly containers: readonly object[]; readonly serviceAccountName?: string };
}

/** The templates of pods. The API server drops the fields that only Knative knows. */
const templatesOf = (manifests: readonly Manifest[]): Template[] =>
  collect(manifests, ({ template }) =>
    (template as Partial<Template> | undefined)?.spec?.containers ? (template as Template) : undefined,
  );

/** Those that objects name; the installation for all namespaces names its own. */
const namespacesIn = (all: readonly Manifest[], name: string): unknown[] =>
  name.endsWith("all-namespaces")
    ? []
    : [
        ...new Set(
          collect(all, (one) => one["namespace"] ?? one["grafana.com/namespace"] ?? one["kubernetes.io/metadata.name"]),
        ),
      ];

const makesPods = ({ apiVersion, kind }: Manifest): boolean =>
  ["Deployment", "CronJob"].includes(kind) || (kind === "Service" && apiVersion.startsWith("serving.knative.dev/"));

const admit = ({ call, namespace }: Place, { metadata, spec }: Template): Promise<string> =>
  call("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
    metadata: { ...metadata, name: "a-pod" },
    spec,
  }).then(() => "admitted", String);

describe("kubectl apply", () => {
  for (const [name, rendering] of OVERLAYS)
    it(`${name}: its pods are admitted where restricted is enforced, and a second time it changes nothing`, async (t) => {
      const place = await openApplied(t);
      const all = await renderOverlay(place.namespace, rendering);
      for (const named of namespacesIn(all, name)) assert.equal(named, place.namespace);
      const manifests = all.filter(({ apiVersion }) => !apiVersion.includes("knative.dev"));
      await place.apply(manifests);
      const templates = templatesOf(all);
      assert.equal(templates.length, all.filter(makesPods).length);
      // knative/events lies upon an installation that has the account of its pods.
      const accounts = `/api/v1/namespaces/${place.namespace}/serviceaccounts`;
      for (const account of new Set(templates.map(({ spec }) => spec.serviceAccountName)))
        await place.call("POST", accounts, { metadata: { name: account } }).catch((error: unknown) => {
          assert.match(String(error), /AlreadyExists/);
        });
      for (const template of templates)
        assert.equal(await admit(place, template), "admitted", JSON.stringify(template));
      const bare = { spec: { containers: [{ name: "c", image: "x" }] } };
      assert.match(await admit(place, bare), /violates PodSecurity \\"restricted/);
      await assertUnchanged(manifests);
    });

  it("leaves the installation of another namespace as it is", async (t) => {
    const [one, other] = [await openApplied(t), await openApplied(t)];
    const manifests = await renderManifests(one.namespace);
    await one.apply(manifests);
    const others = await renderManifests(other.namespace);
    await other.apply(others);
    await assertUnchanged(manifests);
    await succeed(withManifests(["delete", "--wait=false"], others));
    await assertUnchanged(manifests);
  });

  it("takes another image after a wrong one, at once, and yet another after that", async (t) => {
    const { namespace, apply } = await openApplied(t);
    for (const tag of ["wrong", "right", "next"]) await apply(await renderManifests(namespace, imageOf(tag)));
  });

  it("leaves the certificate alone, and kubectl delete takes it away with everything else, without an error", async (t) => {
    const { call, namespace, apply } = await openApplied(t);
    const secret = `/api/v1/namespaces/${namespace}/secrets/rollout-operator-self-signed-certificate`;
    const manifests = await renderManifests(namespace);
    await apply(manifests);
    const data = { ca: "Y2E=", cert: "Y2VydA==", key: "a2V5" };
    await call("PATCH", secret, { data });
    await apply(manifests);
    assert.deepEqual((await call<{ data: object }>("GET", secret)).data, data);
    await succeed(withManifests(["delete"], manifests.filter(isHook)));
    await succeed(withManifests(["delete", "--ignore-not-found"], manifests));
    await assert.rejects(call("GET", secret), /NotFound/);
  });

  it("leaves RolloutGroups and Leases behind; what docs/start/upgrade.md says then deletes them, and Ready is over", async (t) => {
    const { admin, call, namespace, kubectl } = await openPlaceFor(t);
    await define(admin, "rolloutgroups");
    const groups = `/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgroups`;
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const kind = { apiVersion: "zonewise.dev/v1", kind: "RolloutGroup" };
    await call("POST", groups, { ...kind, metadata: { name: "ingester" } });
    const lastTransitionTime = new Date().toISOString();
    const ready = { type: "Ready", status: "True", reason: "AllZonesUpdated", message: "", lastTransitionTime };
    await call("PATCH", `${groups}/ingester/status`, { status: { conditions: [ready] } });
    for (const name of ["zonewise-reconciler", "other"]) await call("POST", leases, { metadata: { name } });
    const wait = ["wait", "--for=condition=Ready", "rolloutgroup/ingester", "--timeout=60s"];
    await succeed(kubectl(wait));
    const page = await readFile(new URL("../../../docs/start/upgrade.md", import.meta.url), "utf8");
    const [, removal = ""] = page.split("\n## Remove\n");
    const [step = ""] = removal.match(/^3\. [^]*?(?=^4\. )/m) ?? [];
    const commands = [...step.matchAll(/^ {7}(kubectl .*)$/gm)].map(([, command = ""]) => command);
    assert.ok(commands.length >= 3);
    await runCommands(commands, tmpdir(), { NAMESPACE: namespace });
    const { code, text } = await kubectl(wait);
    assert.notEqual(code, 0);
    assert.match(text, /NotFound/);
    const { items } = await call<{ items: Manifest[] }>("GET", leases);
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      ["other"],
    );
  });

  it("of network policies is refused until the API server's range is filled in", async (t) => {
    const { call, namespace } = await openPlaceFor(t);
    const components = ["infra/manifests/network-policy", "infra/manifests/namespace"];
    const manifests = await renderManifests(namespace, { folder: "infra/manifests/functions", components });
    const policies = manifests.filter(({ kind }) => kind === "NetworkPolicy");
    assert.equal(policies.length, 4);
    for (const policy of policies) {
      const dryRun = `${pathOfManifest(policy)}?dryRun=All&fieldValidation=Strict`;
      await assert.rejects(call("POST", dryRun, policy), /API_SERVER_CIDR/);
      await call("POST", dryRun, JSON.parse(JSON.stringify(policy).replaceAll("API_SERVER_CIDR", "10.0.0.0/28")));
    }
  });
});
