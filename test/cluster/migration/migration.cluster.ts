/**
 * docs/migrate/rollout-operator.md: from the original to Zonewise and back, by the commands of the page, under a loop of writes; from
 * the manifests of its jsonnet library, and from a release of its chart.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, test } from "node:test";
import type { ConfigMap } from "../../../infra/kubernetes/resources.ts";
import { HELM } from "../install/helm.ts";
import { define } from "../stage/definitions.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { type PodServer, startPodServer } from "../stage/pods.ts";
import { type OpenStage, type Stage, openStage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import type { ZoneOptions } from "../stage/zones.ts";
import { installOriginal } from "./install-original.ts";
import { type Machines, openMachines } from "./machines.ts";
import { CHART, MANIFESTS, type Shape, namesOf } from "./original.ts";
import { GUARDED, KEPT } from "./stand-in.ts";
import { copyManifests, readCommands, readPatches, runCommands } from "./steps.ts";
import { startWrites, untilAnswers } from "./writes.ts";

type Place = Pick<Stage, "call" | "namespace" | "patchZone" | "timeline">;

const NAME = "rollout-operator-zone-tracker";
/** When the original scaled the first zone down: no other zone may follow for 12 hours. */
const earlier = new Date(Date.now() - 3_600_000).toISOString().replace(/\.\d+Z$/, "Z");

/** Two zones of a group that are prepared for a downscale at `port`. */
const trackedZones = (port: number): ZoneOptions[] =>
  ["tracked-a", "tracked-b"].map((name) => ({
    group: "tracked",
    name,
    replicas: 2,
    labels: { "grafana.com/prepare-downscale": "true", "grafana.com/min-time-between-zones-downscale": "12h" },
    annotations: {
      "grafana.com/prepare-downscale-http-path": "prepare",
      "grafana.com/prepare-downscale-http-port": String(port),
    },
  }));

const maps = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;

/** As the original writes it. */
const putTracker = ({ call, namespace }: Place): Promise<unknown> =>
  call("POST", maps(namespace), {
    metadata: { name: NAME },
    data: { "tracked-a": JSON.stringify({ lastDownscaled: earlier }) },
  });

/** As the original reads it. */
async function readTracked({ call, namespace }: Place): Promise<string | undefined> {
  const { data } = await call<ConfigMap>("GET", `${maps(namespace)}/${NAME}`);
  return (JSON.parse(data?.["tracked-a"] ?? "{}") as { lastDownscaled?: string }).lastDownscaled;
}

/** Zonewise refuses the zone that the original's time forbids, and leaves its own times where the original looks. */
async function playTracker(place: Place): Promise<void> {
  const scale = (name: string, replicas: number): Promise<void> => place.patchZone(name, { spec: { replicas } });
  const time = earlier.replace("T", " ").replace("Z", "");
  await assert.rejects(scale("tracked-b", 1), new RegExp(`statefulset tracked-a was downscaled at ${time} `));
  // A denial that will pass, while the machine is slow, is tried again.
  await until("the zone that was last is scaled down", () => scale("tracked-a", 1).then(() => true));
  const written = await readTracked(place);
  assert.ok(written !== undefined && written > earlier, written);
}

interface Scene {
  readonly stage: OpenStage;
  readonly machines: Machines;
  /** Runs commands of the page. */
  readonly run: (commands: readonly string[]) => Promise<string>;
}

const zonesOf = ({ port }: PodServer): ZoneOptions[] => [
  { group: "rolled", name: "rolled-a", replicas: 2 },
  { group: "rolled", name: "rolled-b", replicas: 2 },
  { group: "evicted", name: "evicted-a", replicas: 2 },
  { group: "evicted", name: "evicted-b", replicas: 2 },
  { group: "kept", name: `${KEPT}a`, replicas: 1 },
  { group: "", name: "plain", replicas: 1 },
  { group: "", name: "phased", replicas: 2, strategy: { type: "RollingUpdate" } },
  { group: "", name: GUARDED, replicas: 1, labels: { "grafana.com/no-downscale": "true" } },
  {
    group: "prepared",
    name: "prepared",
    replicas: 1,
    labels: { "grafana.com/prepare-downscale": "true" },
    annotations: {
      "grafana.com/prepare-downscale-http-path": "prepare",
      "grafana.com/prepare-downscale-http-port": String(port),
    },
  },
];

/** A namespace that the original serves, with its groups and budgets; what the page says to do before is done. */
async function openScene(t: TestContext, shape: Shape): Promise<Scene> {
  const stage = await openStage((text) => t.diagnostic(text));
  const { admin, namespace, folder } = stage;
  const pods = await startPodServer();
  const machines = await openMachines({ admin, namespace, folder, original: shape, env: pods.env });
  const names = namesOf(shape, namespace);
  const run = (commands: readonly string[]): Promise<string> => runCommands(commands, folder, names);
  t.after(async () => {
    const webhooks = "mutatingwebhookconfiguration,validatingwebhookconfiguration";
    const policies = ["validating", "mutating"].map((kind) => `${kind}admissionpolicy,${kind}admissionpolicybinding`);
    await run([
      `kubectl delete ${[webhooks, ...policies].join(",")} -l grafana.com/namespace=NAMESPACE`,
      `kubectl -n NAMESPACE patch phasedrollout phased --type=merge -p '{"metadata":{"finalizers":null}}' || true`,
      "kubectl delete -k infra/manifests/complete --ignore-not-found --wait=false",
      "kubectl delete clusterrole,clusterrolebinding -l migration-test=NAMESPACE",
    ]).catch((error: unknown) => t.diagnostic(String(error)));
    await machines.close();
    pods.close();
    await stage.close();
  });
  const patches = shape.release === undefined ? "" : await readPatches(names);
  await copyManifests(folder, { namespace, port: machines.port, patches });
  await run(["kubectl apply -k infra/manifests/crds"]);
  await define(admin, "zoneawarepoddisruptionbudgets", "phasedrollouts");
  await machines.start();
  await installOriginal(stage, shape, { port: machines.port, run });
  await stage.create([...zonesOf(pods), ...trackedZones(pods.port)]);
  if (shape === MANIFESTS) await putTracker(stage);
  await createBudget(stage, "evicted", { maxUnavailable: 1 });
  await createBudget(stage, "kept", { maxUnavailable: 0 });
  await untilAnswers(stage, "original");
  return { stage, machines, run };
}

/** A user's PhasedRollout of the StatefulSet `phased`. */
async function createPhasedRollout({ call, namespace }: OpenStage): Promise<void> {
  const check = { query: { expr: "up == 0", url: "http://prometheus", successWhen: "NoData" } };
  await call("POST", `/apis/sts.plus/v1alpha1/namespaces/${namespace}/phasedrollouts`, {
    apiVersion: "sts.plus/v1alpha1",
    kind: "PhasedRollout",
    metadata: { name: "phased" },
    spec: { targetRef: "phased", check },
  });
}

async function play(t: TestContext, shape: Shape): Promise<void> {
  const { stage, machines, run } = await openScene(t, shape);
  const { timeline } = stage;
  const deleted = (group: string): number =>
    deletions(timeline.entries).filter((entry) => entry.group === group).length;
  const partition = (): number =>
    timeline.statefulSets.get("phased")?.spec?.updateStrategy?.rollingUpdate?.partition ?? 0;
  const before = await readOwn(stage, shape);
  const writes = startWrites(stage);
  try {
    await sleep(1000);
    const flags = await run(await readCommands("Before you begin", "args"));
    const isTracking = flags.includes("-use-zone-tracker=true");
    assert.equal(isTracking, shape === MANIFESTS, flags);
    const to = (await readCommands("To Zonewise")).filter((command) => isTracking || !command.includes("TRACKER"));
    const back = await readCommands("Back to rollout-operator");
    assert.ok(to.length >= 14 && back.length >= 19, `${to.length} and ${back.length} commands`);
    assert.equal(deleted("rolled"), 0, "the stand-in rolls nothing out");
    const asked = to.findIndex((command) => command.includes("set selector"));
    assert.ok(asked > 0);
    await run(to.slice(0, asked));
    await machines.serving();
    await run([...to.slice(asked), "kubectl apply -k infra/manifests/phased-policy"]);
    t.diagnostic(`to Zonewise: ${writes.describe()}`);
    await untilAnswers(stage, "zonewise");
    if (isTracking) await playTracker(stage);
    const tracked = isTracking && (await readTracked(stage));
    await timeline.until("Zonewise rolls out", () => deleted("rolled") >= 4);
    await createPhasedRollout(stage);
    await timeline.until("Zonewise guards a StatefulSet", () => partition() === 2);
    await run(back);
    await untilAnswers(stage, "original");
    if (isTracking) assert.equal(await readTracked(stage), tracked, "the original finds the last time");
    await sleep(3000);
    await timeline.until("enough evictions", () => deleted("evicted") > 20, 600_000);
  } finally {
    await writes.stop();
    t.diagnostic(`all: ${writes.describe()}`);
    if (writes.refused.length + writes.unjudged.length > 0) t.diagnostic(await machines.outputs());
  }
  await timeline.until("the StatefulSet of the PhasedRollout rolls by itself again", () => partition() === 0);
  const policies = ["mutating", "validating"].flatMap((kind) => [
    `${kind}admissionpolicies`,
    `${kind}admissionpolicybindings`,
  ]);
  for (const kind of policies) {
    const { items } = await stage.call<{ items: readonly { metadata: { name: string } }[] }>(
      "GET",
      `/apis/admissionregistration.k8s.io/v1/${kind}`,
    );
    assert.ok(!items.some(({ metadata }) => metadata.name.endsWith(stage.namespace)), kind);
  }
  assert.doesNotMatch(await run(["kubectl -n NAMESPACE get leases -o name"]), /zonewise/);
  assert.match(await run(["kubectl -n NAMESPACE get rolloutgroups"]), /No resources found/);
  assert.deepEqual(await readOwn(stage, shape), before, "the original is as it was");
  assert.deepEqual(writes.refused, []);
  assert.deepEqual(writes.unjudged, []);
  assertNoViolations(timeline.entries.filter(({ group }) => group === "rolled" || group === "evicted"));
}

interface Configuration {
  readonly metadata: { readonly name: string };
  readonly webhooks: readonly { readonly clientConfig: object }[];
}

/** What the original is asked through: its Service, and its webhooks. */
async function readOwn({ call, namespace }: OpenStage, { operator }: Shape): Promise<unknown> {
  const service = await call<{ spec: object }>("GET", `/api/v1/namespaces/${namespace}/services/${operator}`);
  const webhooks = ["validating", "mutating"].map(async (kind) => {
    const { items } = await call<{ items: readonly Configuration[] }>(
      "GET",
      `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations?labelSelector=grafana.com/namespace=${namespace}`,
    );
    // The bundle of the completed Secret vouches for the same certificate.
    return items.map(({ metadata, webhooks }) => [
      metadata.name,
      webhooks.map((one) => ({ ...one, clientConfig: { ...one.clientConfig, caBundle: "" } })),
    ]);
  });
  return [service.spec, ...(await Promise.all(webhooks))];
}

const PROMISE = "refuse no legal write, leave none unjudged, and disrupt one zone at a time";

test(`a migration from its manifests and the way back ${PROMISE}`, (t) => play(t, MANIFESTS));

test(`a migration from a release of its chart and the way back ${PROMISE}`, { skip: HELM.missing }, (t) =>
  play(t, CHART),
);
