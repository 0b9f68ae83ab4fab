/** What the CLI tells of node updates, by what the real ticks have recorded of them. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { define } from "../../demo/definitions.ts";
import { createPolicy, label, setNodeStage } from "../../reconciler/nodes/act/stage.ts";
import { openTerminal } from "../stage.ts";

/** Where the CLI expects them by default. */
const NAMESPACE = "brupop-bottlerocket-aws";
const SHADOWS = "bottlerocketshadows.brupop.bottlerocket.aws";

it("explain node tells of a node's update, its policy, who waits and why", { timeout: 300_000 }, async (t) => {
  const stage = await setNodeStage({ namespace: NAMESPACE });
  t.after(() => stage.close());
  await define(stage.emulator.store, ["rolloutgroups"]);
  stage.emulator.store.create("namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
  createPolicy(stage, {});
  for (const name of ["node-1", "node-2"]) label(stage, name);
  await stage.tick();
  const { run } = await openTerminal(t, stage);
  assert.match((await run("explain node/node-1")).out, /^node\/node-1\n {2}Not updated {2}AgentSilent\n/);

  const status = { current_version: "1.0.0", target_version: "1.1.0", current_state: "Idle", crash_count: 0 };
  for (const name of ["node-1", "node-2"]) {
    const shadow = stage.emulator.store.get(SHADOWS, NAMESPACE, `brs-${name}`) ?? assert.fail();
    stage.emulator.store.update(SHADOWS, { ...shadow, status });
  }
  await stage.tick();
  const active = await run("explain node/node-1");
  assert.equal(active.code, 1);
  assert.match(
    active.out,
    /^node\/node-1\n {2}Not updated {2}St(?:art|ag)ing\n {4}why +it is updated from 1.0.0 to 1.1.0/,
  );
  assert.match(active.out, /^ +since +.*\n +next +in /m);
  assert.doesNotMatch(active.out, /nodeupdatepolicy\/|^ +blocks/m, "explain takes what it has printed");
  assert.match(
    (await run("explain node/node-2")).out,
    /Not updated {2}LimitReached\n +why +it runs 1.0.0 and will get 1.1.0; .*\n +rule +fewer nodes than maxConcurrent are active\n/,
  );
});
