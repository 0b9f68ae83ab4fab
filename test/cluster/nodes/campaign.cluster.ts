/**
 * A whole campaign over twelve nodes in three zones, with a zone-aware and a core budget, under the rights of the
 * manifests: never two zones disrupted, never more nodes than allowed, and every node comes back as it was.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { isUpdated, judge, openCampaign } from "./campaign-stage.ts";

/** Of the controller, at random moments. */
const KILLS = 20;
/** Of agents and of the API: on a loaded machine the API starts for as long as it would live until the next. */
const RESTARTS = { agents: 60, apis: 15 };

const NODES = 12;

it("twelve nodes are updated, six at once; twenty kills of the controller, and others of agents and of the API, do no harm", async (t) => {
  const spec = { maxConcurrent: "50%", features: { protectFromScaleDown: true } };
  const campaign = await openCampaign(t, { nodes: NODES, spec, web: 6 });
  let reconciler = campaign.startReconciler();
  let kills = 0;
  const restarts = { ...RESTARTS };
  await campaign.until("every node updated", async (shadows) => {
    const isDone = shadows.length === NODES && shadows.every(isUpdated);
    if (isDone && kills === KILLS) return true;
    if (kills < KILLS && (isDone || Math.random() < 0.5)) {
      kills += 1;
      await reconciler.kill();
      reconciler = campaign.startReconciler();
    }
    if (Math.random() < 0.2 && restarts.agents-- > 0)
      await campaign.played[Math.floor(Math.random() * NODES)]?.restartAgent();
    if (Math.random() < 0.1 && restarts.apis-- > 0) await campaign.nodeStage.restartApi();
    return false;
  });
  assert.ok(campaign.most() <= NODES / 2, `${campaign.most()} at once`);
  assert.deepEqual(
    campaign.played.map(({ host }) => host.facts().reboots),
    Array.from({ length: NODES }, () => 1),
  );
  await campaign.until(
    "nobody left in a slot",
    async () => ((await campaign.policy()).status as { active?: unknown[] } | undefined)?.active?.length === 0,
  );
  await judge(campaign);
});
