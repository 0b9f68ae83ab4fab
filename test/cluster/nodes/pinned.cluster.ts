/**
 * Campaigns over zone-pinned StatefulSets: whatever maxConcurrent allows, every drain that begins ends, and none is
 * begun that could not.
 */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { systemClock } from "../../../infra/clock.ts";
import type { Node } from "../../../infra/kubernetes/resources.ts";
import type { PolicyStatus } from "../../../reconciler/nodes/policy-status.ts";
import { type Campaign, isUpdated, judge, openCampaign } from "./campaign-stage.ts";

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
    async () => (await statusOf(campaign)).skipped?.["NoPlaceForPods"] === 3,
  );
  await systemClock.sleep(3000);
  const { active, waiting } = await statusOf(campaign);
  assert.deepEqual(active, []);
  for (const { message } of waiting)
    assert.match(message, /no other node of zone .* takes pods, and .*store-.-\d would wait for .*store-.-\d/);
  for (const { metadata } of campaign.nodeStage.nodes)
    assert.equal((await admin.call<Node>("GET", `/api/v1/nodes/${metadata?.name}`)).spec?.unschedulable, undefined);
  // Events are written beside the ticks.
  await campaign.until("each has its Event", async () => (await eventsOf(campaign, "UpdateNotStarted")).length === 3);
  const budget = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets/store`;
  await admin.call("PATCH", budget, { spec: { maxUnavailable: 2 } });
  await campaign.until("every node updated", (shadows) => shadows.every(isUpdated));
});
