/**
 * Whole campaigns over twelve nodes in three zones, with a zone-aware and a core budget: never two zones disrupted,
 * never more nodes than allowed, and every node comes back.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../../infra/clock.ts";
import type { Node, PodDisruptionBudget } from "../../../infra/kubernetes/resources.ts";
import { isUpdated, judge, openCampaign, POLICIES } from "./campaign-stage.ts";

/** Of the controller, at random moments. */
const KILLS = 20;

for (const { maxConcurrent, allowed } of [
  { maxConcurrent: "50%", allowed: 6 },
  { maxConcurrent: 1, allowed: 1 },
] as const)
  it(`twelve nodes are updated, ${maxConcurrent} at once`, async (t) => {
    const campaign = await openCampaign(t, { nodes: 12, spec: { maxConcurrent }, web: 6 });
    campaign.startReconciler();
    await campaign.until("every node updated", (shadows) => shadows.length === 12 && shadows.every(isUpdated));
    assert.ok(campaign.most() <= allowed, `${campaign.most()} at once`);
    assert.deepEqual(
      campaign.played.map(({ host }) => host.facts().reboots),
      Array.from({ length: 12 }, () => 1),
    );
    await campaign.until(
      "nobody left in a slot",
      async () => ((await campaign.policy()).status as { active?: unknown[] } | undefined)?.active?.length === 0,
    );
    await judge(campaign);
  });

it("a host that falls back to the old version freezes the campaign until a person says so", async (t) => {
  const campaign = await openCampaign(t, { nodes: 3, spec: { maxConcurrent: 1 } });
  for (const { host } of campaign.played) host.rollBack(1);
  campaign.startReconciler();
  const frozen = async (): Promise<{ id: string } | undefined> =>
    ((await campaign.policy()).status as { frozen?: { id: string } } | undefined)?.frozen;
  await campaign.until("frozen", async () => (await frozen()) !== undefined);
  await campaign.until("at rest", (shadows) =>
    shadows.every(({ status, spec }) => spec.state === "Idle" && status?.current_state === "Idle"),
  );
  await systemClock.sleep(3000);
  assert.equal(
    campaign.played.filter(({ host }) => host.facts().reboots > 0).length,
    1,
    "nothing starts while it is frozen",
  );
  for (const { host } of campaign.played) host.rollBack(0);
  const id = (await frozen())?.id;
  await campaign.stage.admin.call("PATCH", `${POLICIES}/${campaign.stage.namespace}`, { spec: { unfreeze: id } });
  await campaign.until("the others updated", (shadows) => shadows.filter(isUpdated).length >= 2);
  await judge(campaign);
});

it("twenty kills of the controller, and others of agents and of the API, do no harm", async (t) => {
  const campaign = await openCampaign(t, { nodes: 6, spec: { maxConcurrent: 2 } });
  let reconciler = campaign.startReconciler();
  let kills = 0;
  await campaign.until("every node updated", async (shadows) => {
    const isDone = shadows.length === 6 && shadows.every(isUpdated);
    if (isDone && kills === KILLS) return true;
    if (kills < KILLS && (isDone || Math.random() < 0.5)) {
      kills += 1;
      await reconciler.kill();
      reconciler = campaign.startReconciler();
    }
    if (Math.random() < 0.2) await campaign.played[Math.floor(Math.random() * 6)]?.restartAgent();
    if (Math.random() < 0.1) await campaign.nodeStage.restartApi();
    return false;
  });
  assert.deepEqual(
    campaign.played.map(({ host }) => host.facts().reboots),
    Array.from({ length: 6 }, () => 1),
  );
  await judge(campaign);
});

it("a budget that allows nothing holds its node by name, and no other; without it the node follows", async (t) => {
  const campaign = await openCampaign(t, { nodes: 3, spec: { maxConcurrent: 1 } });
  const { admin, namespace } = campaign.stage;
  const [first] = campaign.nodeStage.nodes;
  const name = first?.metadata?.name ?? "";
  const labels = { app: "stuck" };
  const budgets = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
  await admin.call("POST", `/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name: "stuck-0", labels },
    spec: { nodeName: name, containers: [{ name: "c", image: "x" }] },
  });
  await admin.call("POST", budgets, {
    metadata: { name: "stuck" },
    spec: { minAvailable: 1, selector: { matchLabels: labels } },
  });
  // One that its controller has not seen yet allows nothing, and says nothing of its pods: the node would start.
  const isObserved = async (): Promise<boolean> => {
    const { status } = await admin.call<Partial<PodDisruptionBudget>>("GET", `${budgets}/stuck`);
    return status?.observedGeneration === 1;
  };
  await campaign.until("the budget observed", isObserved);
  campaign.startReconciler();
  await campaign.until("the others updated", (shadows) => shadows.filter(isUpdated).length === 2);
  const waiting = async (): Promise<string> => JSON.stringify((await campaign.policy()).status ?? {});
  await campaign.until("the pod named", async () =>
    /DrainBlocked.*stuck-0|stuck-0.*DrainBlocked/.test(await waiting()),
  );
  assert.equal(campaign.played[0]?.host.facts().reboots, 0);
  const node = await admin.call<Node>("GET", `/api/v1/nodes/${name}`);
  assert.equal(node.spec?.unschedulable, undefined, "a drain that cannot succeed is not begun");
  await admin.call("DELETE", `${budgets}/stuck`);
  await campaign.until("the last one updated", (shadows) => shadows.every(isUpdated));
  await judge(campaign);
});
