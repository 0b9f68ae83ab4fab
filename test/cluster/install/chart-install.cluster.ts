/**
 * The chart on the API server: what `helm install` leaves there, what an upgrade changes, and what `helm uninstall`
 * takes away.
 */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { CHART, HELM } from "./helm.ts";
import { define } from "../stage/definitions.ts";
import { type KubectlResult, runKubectl } from "../stage/kubectl.ts";
import { deleteManifest, type Manifest, pathOfManifest, renderManifests } from "../stage/manifests.ts";
import { openPlaceFor, type Place } from "../stage/place.ts";

interface Stored extends Manifest {
  readonly metadata: Manifest["metadata"] & {
    readonly generation?: number;
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: object;
  readonly status?: object;
}

interface ChartPlace extends Place {
  /** What kustomize renders for it. */
  readonly manifests: readonly Manifest[];
  readonly helm: (command: string, values?: object, flags?: readonly string[]) => Promise<KubectlResult>;
  /** The same; fails the test with Helm's words if it fails. */
  readonly mustHelm: ChartPlace["helm"];
  /** kubectl with all manifests. */
  readonly withAll: (verb: "apply" | "delete") => Promise<void>;
  /** What the API server has of the manifests, in their order. */
  readonly readAll: () => Promise<Stored[]>;
}

/** The image that kustomizations name. */
const IMAGE = { image: { tag: "latest" } };
const RELEASE = "zonewise";
const SECRET = "rollout-operator-self-signed-certificate";
/** What the API server gives to a Service. */
const ADDRESSES = new Set(["clusterIP", "clusterIPs"]);
const TOOLS = /helm|kubectl|managed-by|deployment\.kubernetes\.io/;

/** Without a release when the test ends. */
async function openChartPlace(t: TestContext): Promise<ChartPlace> {
  const place = await openPlaceFor(t);
  const { admin, namespace } = place;
  const manifests = await renderManifests(namespace);
  await define(
    admin,
    "phasedrollouts",
    "replicatemplates",
    "rolloutgates",
    "rolloutgroups",
    "zoneawarepoddisruptionbudgets",
  );
  place.defer(async () => {
    const isHook = ({ kind }: Manifest): boolean => kind.endsWith("WebhookConfiguration");
    for (const one of manifests.toSorted((a, b) => Number(isHook(b)) - Number(isHook(a))))
      await deleteManifest(admin, one);
  });
  const helm: ChartPlace["helm"] = async (command, values = {}, flags = []) => {
    const chart = command === "uninstall" ? [] : [CHART, "--values", "-"];
    // Definitions are everybody's: by default, Helm 4 refuses where they differ.
    const skip = command === "install" ? ["--skip-crds"] : [];
    return await HELM.run([command, RELEASE, ...chart, "--namespace", namespace, ...skip, ...flags], values);
  };
  return {
    ...place,
    manifests,
    helm,
    async mustHelm(...command) {
      const result = await helm(...command);
      assert.equal(result.code, 0, result.text);
      return result;
    },
    async withAll(verb) {
      const { code, text } = await runKubectl([verb, "-f", "-"], { apiVersion: "v1", kind: "List", items: manifests });
      assert.equal(code, 0, text);
    },
    readAll: () =>
      Promise.all(manifests.map((one) => admin.call<Stored>("GET", `${pathOfManifest(one)}/${one.metadata.name}`))),
  };
}

/** An object without what the API server and the two tools write about it. */
function withoutTraces({ metadata, spec = {}, status, ...object }: Stored): object {
  void status;
  const { name, namespace, labels = {}, annotations = {} } = metadata;
  const without = (all: object, isTrace: (key: string) => boolean): object =>
    Object.fromEntries(Object.entries(all).filter(([key]) => !isTrace(key)));
  const [ownLabels, ownAnnotations] = [labels, annotations].map((all) => without(all, (key) => TOOLS.test(key)));
  return { ...object, name, namespace, ownLabels, ownAnnotations, spec: without(spec, (key) => ADDRESSES.has(key)) };
}

/** Changes with an object, and not with its status. */
const versionOf = ({ kind, metadata: { name, generation, resourceVersion } }: Stored): string =>
  `${kind} ${name} ${generation === undefined ? `version ${resourceVersion}` : `generation ${generation}`}`;
const versionsIn = async ({ readAll }: ChartPlace): Promise<string[]> => (await readAll()).map((one) => versionOf(one));

describe("the chart on a cluster", { skip: HELM.missing }, () => {
  it("installs what kubectl apply -k installs", async (t) => {
    const place = await openChartPlace(t);
    const read = async (): Promise<object[]> => (await place.readAll()).map((one) => withoutTraces(one));
    await place.withAll("apply");
    const applied = await read();
    await place.withAll("delete");
    await place.mustHelm("install", IMAGE);
    assert.deepEqual(await read(), applied);
  });

  it("an upgrade with unchanged values changes nothing, the certificate and the bundles in the configurations included", async (t) => {
    const place = await openChartPlace(t);
    await place.mustHelm("install");
    await place.admin.call("PATCH", `/api/v1/namespaces/${place.namespace}/secrets/${SECRET}`, {
      data: { "tls.crt": "YQ==" },
    });
    for (const one of (await place.readAll()).filter(({ kind }) => kind.endsWith("WebhookConfiguration"))) {
      const { webhooks = [] } = one as unknown as { webhooks?: { clientConfig: object }[] };
      const injected = webhooks.map((hook) => ({
        ...hook,
        clientConfig: { ...hook.clientConfig, caBundle: "YQ==" },
      }));
      await place.admin.call("PATCH", `${pathOfManifest(one)}/${one.metadata.name}`, { webhooks: injected });
    }
    const before = await versionsIn(place);
    for (let again = 1; again <= 2; again++) {
      await place.mustHelm("upgrade");
      assert.deepEqual(await versionsIn(place), before);
    }
  });

  it("helm uninstall takes all of it away, and leaves the definitions", async (t) => {
    const { admin, namespace, manifests, mustHelm } = await openChartPlace(t);
    await mustHelm("install");
    await mustHelm("uninstall", {}, ["--wait"]);
    for (const one of manifests)
      await assert.rejects(
        admin.call("GET", `${pathOfManifest(one)}/${one.metadata.name}`),
        { cause: 404 },
        `${one.kind} ${one.metadata.name}`,
      );
    const { items } = await admin.call<{ items: Manifest[] }>("GET", `/api/v1/namespaces/${namespace}/secrets`);
    assert.deepEqual(items, []);
    for (const one of await renderManifests(namespace, { folder: "infra/manifests/crds" }))
      await admin.call("GET", `${pathOfManifest(one)}/${one.metadata.name}`);
  });

  it("takes over what kubectl apply -k has installed, only on request", async (t) => {
    const place = await openChartPlace(t);
    await place.withAll("apply");
    const { code, text } = await place.helm("install", IMAGE);
    assert.notEqual(code, 0);
    assert.match(text, /exists and cannot be imported into the current release/);
    const before = (await place.readAll()).map((one) => withoutTraces(one));
    await place.mustHelm("install", IMAGE, ["--take-ownership"]);
    assert.deepEqual(
      (await place.readAll()).map((one) => withoutTraces(one)),
      before,
    );
  });

  it("refuses to be installed beside another Service of its name, such as the original's", async (t) => {
    const { admin, namespace, helm } = await openChartPlace(t);
    const spec = { selector: { name: "rollout-operator" }, ports: [{ port: 443 }] };
    await admin.call("POST", `/api/v1/namespaces/${namespace}/services`, {
      metadata: { name: "rollout-operator" },
      spec,
    });
    const { code, text } = await helm("install");
    assert.notEqual(code, 0);
    assert.match(text, /Service "rollout-operator" in namespace "\S+" exists and cannot be imported/);
  });
});
