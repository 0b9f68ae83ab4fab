/**
 * One campaign in which much goes wrong, one thing after the other: the timeline of the pods, and what is left on the
 * nodes, are judged at its end.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../../infra/clock.ts";
import type { Node } from "../../../infra/kubernetes/resources.ts";
import { remove } from "../stage/client.ts";
import { type Campaign, isUpdated, judge, openCampaign, POLICIES } from "./campaign-stage.ts";

const LB_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers";
const MANAGED_LABEL = "bottlerocket.aws/updater-interface-version";

const nameOf = ({ nodeStage }: Campaign, index: number): string => nodeStage.nodes[index]?.metadata?.name ?? "";

/** A pod without a controller that takes its time to end. */
async function createSlowPod({ stage, ...campaign }: Campaign, index: number, exitAfterMs: number): Promise<void> {
  await stage.admin.call("POST", `/api/v1/namespaces/${stage.namespace}/pods`, {
    metadata: {
      name: `slow-${index}`,
      annotations: { "sim/ready-after-ms": "100", "sim/exit-after-ms": String(exitAfterMs) },
    },
    spec: {
      nodeName: nameOf({ stage, ...campaign }, index),
      terminationGracePeriodSeconds: 120,
      containers: [{ name: "c", image: "x" }],
    },
  });
}

it("window closed, API and agent killed in a drain, label lost in a drain; core budgets and load balancers are heeded", async (t) => {
  const campaign = await openCampaign(t, {
    nodes: 6,
    spec: { maxConcurrent: 1 },
    web: 3,
    host: () => ({ exclusionMs: 300 }),
  });
  const { stage, nodeStage, played } = campaign;
  const { admin, namespace } = stage;
  const patchPolicy = (spec: object) => admin.call("PATCH", `${POLICIES}/${namespace}`, { spec });
  const nodeOf = (index: number) => admin.call<Node>("GET", `/api/v1/nodes/${nameOf(campaign, index)}`);
  // Zone after zone, and by name: 0, 3, then 1.
  await createSlowPod(campaign, 0, 40_000);
  await createSlowPod(campaign, 1, 100_000);
  campaign.startReconciler();

  const isDraining = (index: number) =>
    campaign.until(`node ${index} is being drained`, (shadows) => {
      const { status } = shadows.find(({ name }) => name === `brs-${nameOf(campaign, index)}`) ?? {};
      return (status?.drain?.remaining ?? 0) > 0;
    });
  const { until } = campaign;
  await isDraining(0);
  const drained = await nodeOf(0);
  assert.deepEqual(
    [drained.spec?.unschedulable, drained.metadata?.labels?.[LB_LABEL]],
    [true, "True"],
    "cordoned and excluded together",
  );
  await patchPolicy({ window: { cron: "* * * * * * 2035" } });
  await nodeStage.restartApi();
  await played[0]?.restartAgent();
  const activeOf = async (): Promise<number> =>
    ((await campaign.policy()).status as { active?: unknown[] } | undefined)?.active?.length ?? 0;
  await until(
    "the active node finishes, and no other one starts",
    async (shadows) => shadows.some(isUpdated) && (await activeOf()) === 0,
  );
  await systemClock.sleep(2000);
  assert.deepEqual(
    played.map(({ host }) => host.facts().reboots),
    [1, 0, 0, 0, 0, 0],
  );
  await until("five wait for the window", async () =>
    /"WindowClosed":5/.test(JSON.stringify((await campaign.policy()).status)),
  );

  await patchPolicy({ window: null });
  await isDraining(1);
  const labelPath = `/api/v1/nodes/${nameOf(campaign, 1)}`;
  await admin.call("PATCH", labelPath, { metadata: { labels: { [MANAGED_LABEL]: null } } });
  await until("the node without the label serves again, and its shadow is gone", async (shadows) => {
    const { spec, metadata } = await nodeOf(1);
    const isClean = spec?.unschedulable === undefined && metadata?.labels?.[LB_LABEL] === undefined;
    return isClean && !shadows.some(({ name }) => name === `brs-${nameOf(campaign, 1)}`);
  });
  await remove(admin, `/api/v1/namespaces/${namespace}/pods/slow-1?gracePeriodSeconds=0`);
  await until("the others updated", (shadows) => shadows.length === 5 && shadows.every(isUpdated));
  await until("nobody left in a slot", async () => (await activeOf()) === 0);
  assert.deepEqual(
    played.map(({ host }) => host.facts().reboots),
    [1, 0, 1, 1, 1, 1],
  );
  assert.ok(
    stage.timeline.entries.filter(({ group, state }) => group === "store" && state === "terminating").length >= 6,
    "zones were drained",
  );
  for (const index of nodeStage.nodes.keys())
    assert.equal((await nodeOf(index)).metadata?.labels?.[LB_LABEL], undefined);
  await judge(campaign);
});
