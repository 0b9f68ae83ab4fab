/** `npm run drill` on a real control plane, against our processes, as its user runs it. */
import assert from "node:assert/strict";
import { before, describe } from "node:test";
import { findMissing, readMachine } from "../real-node/find-node.ts";
import { connectAdmin } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";
import { serveWebhooks } from "../stage/eviction-stage.ts";
import { enforcePolicies } from "../stage/manifests.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { becomeUser, listMade, untilNothingIsLeft } from "./drill-stage.ts";

before(async () => {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  await define(admin, "rolloutgroups", "zoneawarepoddisruptionbudgets");
  admin.close();
});

/** Webhooks, policies and a reconciler. */
async function install(stage: Stage): Promise<void> {
  await serveWebhooks(stage, 2, { hooks: ["pod-eviction", "no-downscale"] });
  await enforcePolicies(stage, { prefix: "no-downscale." });
  stage.start({ RECONCILE_INTERVAL: "1s" });
}

const noNode = findMissing(readMachine(process.env));

describe("a drill", { concurrency: 3 }, () => {
  if (noNode === undefined)
    scenario("with containers on the real node all holds, too", async (stage) => {
      await install(stage);
      const start = await becomeUser(stage);
      const pods = ["--node-selector", "sim/real=true", "--image", "localhost/pause:local"];
      const ended = await start("-n", stage.namespace, ...pods).ended;
      stage.diagnostic(ended.err + ended.out);
      assert.equal(ended.code, 0, ended.out + ended.err);
      await untilNothingIsLeft(stage);
    });

  scenario("in the namespace of an installation all holds; what a killed one has left goes", async (stage) => {
    await install(stage);
    const start = await becomeUser(stage);
    const place = ["-n", stage.namespace] as const;
    const [first, killed] = [start(...place), start(...place)];
    await until("the other one is under way", async () => killed.err().includes("drains:"));
    killed.kill();
    const ended = await first.ended;
    stage.diagnostic(ended.err + ended.out);
    assert.equal(ended.code, 0, ended.out + ended.err);
    const left = await listMade(stage, stage.namespace);
    assert.ok(left.length > 0, "the killed one has left something");
    const cleaned = await start(...place, "--clean").ended;
    assert.deepEqual([cleaned.code, cleaned.out], [0, "nothing is left\n"], cleaned.err);
    await untilNothingIsLeft(stage);
  });
});
