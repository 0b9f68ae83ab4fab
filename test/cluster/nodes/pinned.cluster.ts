/**
 * Campaigns over zone-pinned StatefulSets: whatever maxConcurrent allows, every drain that begins ends, and none is
 * begun that could not.
 */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { systemClock } from "../../../infra/clock.ts";
import type { Node } from "../../../infra/kubernetes/resources.ts";
import type { PolicyStatus } from "../../../reconciler/nodes/policy-status.ts";
import { remove } from "../stage/client.ts";
import { type Campaign, isUpdated, judge, openCampaign } from "./campaign-stage.ts";
import { TEST_LABEL } from "./node-stage.ts";

const statusOf = async (campaign: Campaign): Promise<PolicyStatus> =>
  ((await campaign.policy()).status ?? {}) as PolicyStatus;

interface NodeEvent {
  readonly reason: string;
  readonly message: string;
  readonly involvedObject: { readonly kind: string; readonly name: string };
}

async function eventsOf({ stage, nodeStage }: Campaign, reason: string): Promise<string[]> {
  const { items } = await stage.admin.call<{ items: NodeEvent[] }>(
    "GET",
    "/api/v1/namespaces/default/events?limit=5000",
  );
  const names = new Set(nodeStage.nodes.map(({ metadata }) => metadata?.name));
  return items
    .filter((event) => event.reason === reason && names.has(event.involvedObject.name))
    .map(({ message }) => message);
}

/** A node in one of these is out of service, or is about to be. */
const GOING: ReadonlySet<string> = new Set(["Starting", "Staging", "Holding", "Draining", "Rebooting"]);

/**
 * Plays until all nodes are updated; reports how long it took, and what was given up. Never are two nodes of a zone
 * going.
 */
async function updateAll(t: TestContext, campaign: Campaign, count: number): Promise<void> {
  const start = systemClock.monotonic();
  const held = new Set<string>();
  const both = new Set<string>();
  let most = 0;
  await campaign.until("every node updated, and nobody left in a slot", async (shadows) => {
    const status = await statusOf(campaign);
    for (const { reason } of status.waiting ?? []) held.add(reason);
    const zones = (status.active ?? []).flatMap(({ phase, zone = "" }) => (GOING.has(phase) ? [zone] : []));
    most = Math.max(most, zones.length);
    if (new Set(zones).size < zones.length) both.add(JSON.stringify(status.active));
    return shadows.length === count && shadows.every(isUpdated) && status.active?.length === 0;
  });
  const seconds = Math.round((systemClock.monotonic() - start) / 1000);
  const { deferred } = await statusOf(campaign);
  const abandoned = await eventsOf(campaign, "UpdateAbandoned");
  t.diagnostic(
    `${count} nodes updated in ${seconds} s, ${deferred.length} deferred, ${abandoned.length} abandoned, ${most} going at once at most; held: ${[...held].join(", ")}`,
  );
  assert.deepEqual([deferred, abandoned, [...both]], [[], [], []]);
  assert.deepEqual(
    campaign.played.map(({ host }) => host.facts().reboots),
    campaign.played.map(() => 1),
  );
  await judge(campaign);
}

for (const [zonesInOrder, maxConcurrent] of [
  [true, 6],
  [false, 3],
] as const)
  it(`two nodes a zone, two pods on each, ${maxConcurrent} at once allowed, zones ${zonesInOrder ? "in order" : "together"}: no drain waits for another one`, async (t) => {
    const campaign = await openCampaign(t, { nodes: 6, replicas: 4, spec: { maxConcurrent, zonesInOrder } });
    campaign.startReconciler();
    await updateAll(t, campaign, 6);
  });

for (const maxConcurrent of [1, 3])
  it(`one node a zone, one pod on each, ${maxConcurrent} at once allowed: each pod waits for its node, and comes back`, async (t) => {
    const campaign = await openCampaign(t, { nodes: 3, replicas: 1, spec: { maxConcurrent, zonesInOrder: false } });
    campaign.startReconciler();
    await updateAll(t, campaign, 3);
  });

it("one node a zone, two pods on each under a budget of one: nothing is begun, and it is said why; with room for both it goes on", async (t) => {
  const campaign = await openCampaign(t, { nodes: 3, replicas: 2, spec: { maxConcurrent: 3, zonesInOrder: false } });
  const { admin, namespace } = campaign.stage;
  campaign.startReconciler();
  await campaign.until(
    "all are held by name",
    async () => (await statusOf(campaign)).skipped?.["DrainWouldNotEnd"] === 3,
  );
  await systemClock.sleep(3000);
  const { active, waiting } = await statusOf(campaign);
  assert.deepEqual(active, []);
  for (const { node, message } of waiting)
    assert.match(message, new RegExp(`store-.-\\d could come back to ${node} alone .*would wait for it`));
  for (const { metadata } of campaign.nodeStage.nodes)
    assert.equal((await admin.call<Node>("GET", `/api/v1/nodes/${metadata?.name}`)).spec?.unschedulable, undefined);
  // Events are written beside the ticks.
  await campaign.until("each has its Event", async () => (await eventsOf(campaign, "UpdateNotStarted")).length === 3);
  const budget = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets/store`;
  await admin.call("PATCH", budget, { spec: { maxUnavailable: 2 } });
  await campaign.until("every node updated", (shadows) => shadows.every(isUpdated));
});

/**
 * Two pods that may run anywhere but for their volumes, which are bound to the first node. The plane's scheduler looks
 * at no volumes.
 */
async function createDisks({ stage: { admin, namespace }, nodeStage }: Campaign): Promise<void> {
  const [home] = nodeStage.nodes;
  const labels = { app: "disk" };
  const claim = { accessModes: ["ReadWriteOnce"], storageClassName: "test" };
  for (const n of [0, 1])
    await admin.call("POST", "/api/v1/persistentvolumes", {
      metadata: { name: `${namespace}-${n}` },
      spec: {
        ...claim,
        claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name: `data-disk-${n}` },
        capacity: { storage: "1Gi" },
        local: { path: "/x" },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchFields: [{ key: "metadata.name", operator: "In", values: [home?.metadata?.name] }] },
            ],
          },
        },
      },
    });
  await admin.call("POST", `/apis/apps/v1/namespaces/${namespace}/statefulsets`, {
    metadata: { name: "disk" },
    spec: {
      replicas: 2,
      podManagementPolicy: "Parallel",
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { "sim/ready-after-ms": "300", "sim/exit-after-ms": "30" } },
        spec: {
          nodeSelector: { [TEST_LABEL]: namespace },
          containers: [{ name: "c", image: "x", volumeMounts: [{ name: "data", mountPath: "/d" }] }],
        },
      },
      volumeClaimTemplates: [
        { metadata: { name: "data" }, spec: { ...claim, resources: { requests: { storage: "1Gi" } } } },
      ],
    },
  });
}

it("a volume that is bound to a node binds its pod: a node that its pod would leave waits for the one that the volume is on", async (t) => {
  const campaign = await openCampaign(t, { nodes: 6, spec: { maxConcurrent: 6, zonesInOrder: false } });
  const { admin, namespace } = campaign.stage;
  t.after(async () => {
    for (const n of [0, 1]) await remove(admin, `/api/v1/persistentvolumes/${namespace}-${n}`);
  });
  await createDisks(campaign);
  await campaign.until("the pods run", async () => {
    const { items } = await admin.call<{ items: { status?: { phase?: string } }[] }>(
      "GET",
      `/api/v1/namespaces/${namespace}/pods?labelSelector=app=disk`,
    );
    return items.length === 2 && items.every(({ status }) => status?.phase === "Running");
  });
  campaign.startReconciler();
  const home = campaign.nodeStage.nodes[0]?.metadata?.name;
  const messages = new Set<string>();
  await campaign.until("every node updated", async (shadows) => {
    for (const { message } of (await statusOf(campaign)).waiting ?? []) messages.add(message);
    return shadows.length === 6 && shadows.every(isUpdated);
  });
  assert.match(
    [...messages].join("\n"),
    new RegExp(`disk-\\d of .* has no place: it fits on ${home} \\(being updated\\) alone`),
  );
  assert.deepEqual(await eventsOf(campaign, "UpdateAbandoned"), []);
});
