/**
 * Groups as charts render them: admitted, rolled out zone by zone, evicted under their budgets, scaled and prepared.
 * The reconciler's policy is in force: each of its writes is among those that the policy names.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { CHART_GROUPS, type ChartGroup, type ChartZone, ROLLOUT_OPERATOR } from "./chart-groups.ts";
import { define } from "../stage/definitions.ts";
import { serveWebhooks } from "../stage/eviction-stage.ts";
import { evict, keepPod } from "../stage/evict.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { enforcePolicies } from "../stage/manifests.ts";
import { type PodServer, startPodServer } from "../stage/pods.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { RESTRICTED } from "../stage/zones.ts";

const HOOKS = ["no-downscale", "prepare-downscale", "pod-eviction", "zpdb-validation"];
const FAST = { "sim/ready-after-ms": "200", "sim/exit-after-ms": "30" };
const REPLICAS = 3;

function buildSet(zone: ChartZone, image: string): object {
  const { name, labels, annotations, selector, serviceName, replicas, podManagementPolicy } = zone;
  const spec = { ...RESTRICTED.pod, containers: [{ name: "app", image, ...RESTRICTED.container }] };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name, labels, annotations },
    spec: {
      ...(replicas !== undefined && { replicas }),
      ...(podManagementPolicy && { podManagementPolicy }),
      serviceName,
      updateStrategy: { type: "OnDelete" },
      selector: { matchLabels: selector },
      template: { metadata: { labels: { ...labels, ...selector }, annotations: { ...FAST, release: "1" } }, spec },
    },
  };
}

/** Resolves once the zones have the release and these replicas, all ready and of the update revision. */
async function untilSettled(
  { timeline }: Stage,
  zones: readonly ChartZone[],
  { replicas, release }: { readonly replicas: number; readonly release: string },
): Promise<void> {
  const isSettled = ({ name }: ChartZone): boolean => {
    const { spec, status, metadata } = timeline.statefulSets.get(name) ?? {};
    if (spec?.template.metadata?.annotations?.["release"] !== release) return false;
    const counts = [spec?.replicas, status?.replicas, status?.readyReplicas, status?.updatedReplicas];
    return status?.observedGeneration === metadata?.generation && counts.every((count) => count === replicas);
  };
  await timeline.until(`${zones.map(({ name }) => name).join(", ")} with ${replicas} replicas`, () =>
    zones.every(isSettled),
  );
  await timeline.caughtUp();
}

/** Changes what the group's replicas follow. */
async function scale(
  { call, namespace }: Stage,
  { scaledBy, template, zones }: ChartGroup,
  replicas: number,
): Promise<void> {
  const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const templates = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/replicatemplates`;
  const targets = {
    leader: [`${sets}/${zones[0]?.name}`],
    template: [`${templates}/${template}`],
    "each zone": zones.map(({ name }) => `${sets}/${name}`),
  }[scaledBy];
  // A webhook refuses what it cannot judge now: while the reconciler holds the group's Lease, or in the time given.
  for (const target of targets)
    await until(`${target} is scaled`, async () => {
      await call("PATCH", `${target}/scale`, { spec: { replicas } });
      return true;
    });
}

async function install(stage: Stage, { template, zones, budgets }: ChartGroup): Promise<void> {
  const { admin, call, namespace } = stage;
  if (template !== undefined) {
    await define(admin, "replicatemplates");
    const spec = { replicas: 3 };
    const body = { apiVersion: ROLLOUT_OPERATOR, kind: "ReplicaTemplate", metadata: { name: template }, spec };
    await call("POST", `/apis/${ROLLOUT_OPERATOR}/namespaces/${namespace}/replicatemplates`, body);
  }
  for (const zone of zones)
    await call("POST", `/apis/apps/v1/namespaces/${namespace}/statefulsets`, buildSet(zone, "app:1"));
  for (const budget of budgets as { apiVersion: string; kind: string }[])
    await call("POST", `/apis/${budget.apiVersion}/namespaces/${namespace}/${budget.kind.toLowerCase()}s`, budget);
}

async function play(stage: Stage, chart: ChartGroup, pods: PodServer): Promise<void> {
  const { timeline, patchZone } = stage;
  const { zones } = chart;
  const [first, second] = zones;
  assert.ok(first && second);
  await install(stage, chart);
  const reconciler = stage.start({ ...pods.env, RECONCILE_INTERVAL: "1s" });
  await scale(stage, chart, REPLICAS);
  await untilSettled(stage, zones, { replicas: REPLICAS, release: "1" });

  for (const { name } of zones)
    await patchZone(name, { spec: { template: { metadata: { annotations: { release: "2" } } } } });
  const whole = { replicas: REPLICAS, release: "2" };
  await untilSettled(stage, zones, whole);
  assert.equal(deletions(timeline.entries).length, REPLICAS * zones.length);
  assertNoViolations(timeline.entries, (zone) =>
    Number(zones.find(({ name }) => name === zone)?.annotations?.["rollout-max-unavailable"]),
  );

  const uid = timeline.pods.get(`${first.name}-0`)?.uid;
  await keepPod(stage, `${first.name}-0`, async () => {
    // The status of a core budget follows its pods after a moment.
    let one = { code: 0, message: "" };
    await until(
      () => `${first.name}-0 is evicted: ${one.message}`,
      async () => {
        one = await evict(stage, `${first.name}-0`);
        return one.code === 201;
      },
    );
    const other = await evict(stage, `${second.name}-0`);
    assert.equal(other.code, 429, other.message);
  });
  await timeline.until("the evicted pod is replaced", () => {
    const now = timeline.pods.get(`${first.name}-0`);
    return now?.uid !== uid && now?.state === "ready";
  });
  await untilSettled(stage, zones, whole);

  await scale(stage, chart, REPLICAS - 1);
  const [smaller, others] = chart.shrinks === "all" ? [zones, []] : [[first], zones.slice(1)];
  await untilSettled(stage, smaller, { ...whole, replicas: REPLICAS - 1 });
  const isPrepared = ({ labels }: ChartZone): boolean => labels["grafana.com/prepare-downscale"] === "true";
  assert.deepEqual(
    [...pods.everPrepared].toSorted(),
    smaller
      .filter(isPrepared)
      .map(({ name }) => `${name}-${REPLICAS - 1}`)
      .toSorted(),
  );
  if (others.length > 0) await sleep(3000);
  await untilSettled(stage, others, whole);
  assert.equal(await reconciler.end(), 0);
  assert.deepEqual(await stage.events("InvalidAnnotation"), []);
}

for (const [name, build] of Object.entries(CHART_GROUPS))
  scenario(name, async (stage) => {
    const pods = await startPodServer();
    stage.defer(pods.close);
    await enforcePolicies(stage, { folder: "infra/manifests/reconciler-policy" });
    await serveWebhooks(stage, 1, { hooks: HOOKS, env: pods.env });
    await play(stage, build(pods.port), pods);
  });
