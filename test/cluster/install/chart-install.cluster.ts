/**
 * The chart on the API server: what `helm install` leaves there, what an upgrade changes, and what `helm uninstall`
 * takes away.
 */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { CHART, HELM } from "./helm.ts";
import { define } from "../stage/definitions.ts";
import type { KubectlResult } from "../stage/kubectl.ts";
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
  /** What the API server has of the manifests, in their order. */
  readonly readAll: () => Promise<Stored[]>;
}

const RELEASE = "zonewise";
const SECRET = "rollout-operator-self-signed-certificate";

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
    readAll: () =>
      Promise.all(manifests.map((one) => admin.call<Stored>("GET", `${pathOfManifest(one)}/${one.metadata.name}`))),
  };
}

/** Changes with an object, and not with its status. */
const versionOf = ({ kind, metadata: { name, generation, resourceVersion } }: Stored): string =>
  `${kind} ${name} ${generation === undefined ? `version ${resourceVersion}` : `generation ${generation}`}`;
const versionsIn = async ({ readAll }: ChartPlace): Promise<string[]> => (await readAll()).map((one) => versionOf(one));

describe("the chart on a cluster", { skip: HELM.missing }, () => {
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
});
