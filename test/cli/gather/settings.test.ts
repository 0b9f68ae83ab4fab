import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { parse } from "yaml";
import { createSettings } from "../../../cli/gather/settings.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";

const MANIFEST = new URL("../../../infra/manifests/reconciler/cronjob.yaml", import.meta.url);
const DEFAULTS = {
  zoneTracker: "rollout-operator-zone-tracker",
  shadows: "brupop-bottlerocket-aws",
  lease: "zonewise-reconciler",
  homes: ["zonewise"],
};

/** A cluster with these objects by `plural namespace/name`; every other one is missing, or forbidden. */
function clusterOf(objects: Readonly<Record<string, unknown>>, code: "NotFound" | "Forbidden" = "NotFound") {
  const asked: string[] = [];
  const get: unknown = async (
    { plural }: { plural: string },
    { namespace, name }: { namespace: string; name: string },
  ) => {
    const key = `${plural} ${namespace}/${name}`;
    asked.push(key);
    const found = objects[key];
    if (found === undefined) throw new RolloutError(code, key);
    return found;
  };
  const list: unknown = async function* ({ plural }: { plural: string }) {
    if (code === "Forbidden") throw new RolloutError(code, plural);
    yield { items: Object.entries(objects).flatMap(([key, object]) => (key.startsWith(`${plural} `) ? [object] : [])) };
  };
  return { asked, cluster: { get, list } as Pick<Cluster, "get" | "list"> as Cluster };
}

const jobOf = (namespace: string, container: object): unknown => ({
  metadata: { namespace },
  spec: { jobTemplate: { spec: { template: { spec: { containers: [container] } } } } },
});

it("the settings are those of the reconciler of the namespace", async () => {
  const env = [
    { name: "ZONE_TRACKER_CONFIG_MAP_NAME", value: "tracker" },
    { name: "LEASE_NAME", valueFrom: { configMapKeyRef: { name: "more", key: "lease" } } },
    { name: "LOG_LEVEL", valueFrom: { secretKeyRef: { name: "x", key: "y" } } },
  ];
  const envFrom = [{ configMapRef: { name: "all" } }];
  const { cluster, asked } = clusterOf({
    "cronjobs cache/zonewise-reconciler": jobOf("cache", { env, envFrom }),
    "configmaps cache/more": { data: { lease: "held" } },
    "configmaps cache/all": { data: { NODE_UPDATES_NAMESPACE: "updates", ZONE_TRACKER_CONFIG_MAP_NAME: "earlier" } },
  });
  const settings = createSettings({ cluster });
  assert.deepEqual(await settings("cache"), {
    zoneTracker: "tracker",
    lease: "held",
    shadows: "updates",
    homes: ["cache"],
    assumed: undefined,
  });
  await settings("cache");
  assert.equal(asked.length, 3);
});

it("of an installation for all namespaces, they are in its own", async () => {
  const { cluster } = clusterOf({
    "cronjobs zonewise/zonewise-reconciler": jobOf("zonewise", {
      env: [
        { name: "NAMESPACES", value: "*" },
        { name: "LEASE_NAME", value: "zonewise-other" },
      ],
    }),
  });
  assert.deepEqual(await createSettings({ cluster })("cache"), {
    ...DEFAULTS,
    lease: "zonewise-other",
    assumed: undefined,
  });
});

it("the reconciler of another namespace that does not serve this one is not its own", async () => {
  const env = [{ name: "NAMESPACES", value: "zonewise, other" }];
  const { cluster } = clusterOf({ "cronjobs zonewise/zonewise-reconciler": jobOf("zonewise", { env }) });
  const settings = createSettings({ cluster });
  assert.deepEqual((await settings("cache")).homes, ["cache"]);
  assert.deepEqual((await settings("other")).homes, ["zonewise"]);
});

it("an installation for several namespaces is found in any of them", async () => {
  const env = [{ name: "NAMESPACES", value: "apps,cache" }];
  const { cluster } = clusterOf({
    "cronjobs apps/zonewise-reconciler": jobOf("apps", { env }),
    "cronjobs mimir/zonewise-reconciler": jobOf("mimir", {}),
  });
  const settings = createSettings({ cluster });
  assert.deepEqual((await settings("cache")).homes, ["apps"]);
  assert.deepEqual((await settings("elsewhere")).homes, ["elsewhere", "zonewise"]);
});

it("the shipped CronJob is read, and sets none of them", async () => {
  const { cluster } = clusterOf({ "cronjobs zonewise/zonewise-reconciler": parse(readFileSync(MANIFEST, "utf8")) });
  assert.deepEqual(await createSettings({ cluster })("zonewise"), { ...DEFAULTS, assumed: undefined });
});

const ASSUMED = [
  { code: "NotFound", why: "there is no CronJob zonewise-reconciler in cache or zonewise" },
  { code: "Forbidden", why: "CronJob zonewise-reconciler cannot be read: no right to" },
] as const;
for (const { code, why } of ASSUMED)
  it(`the defaults are assumed, and it is said why: ${why}`, async () => {
    assert.deepEqual(await createSettings(clusterOf({}, code))("cache"), {
      ...DEFAULTS,
      homes: ["cache", "zonewise"],
      assumed: why,
    });
  });

it("a ConfigMap that may not be read is not taken for the CronJob", async () => {
  const job = jobOf("cache", { envFrom: [{ configMapRef: { name: "all" } }] });
  const { cluster } = clusterOf({ "cronjobs cache/zonewise-reconciler": job }, "Forbidden");
  const { assumed } = await createSettings({ cluster })("cache");
  assert.equal(assumed, "a ConfigMap of CronJob zonewise-reconciler cannot be read: no right to");
});
