/** Giving a node back: our own marks alone are undone, and never after a reboot was announced. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { dig } from "../../emulator/objects.ts";
import { type Agent, createShadow, type NodeAnswer, type NodeStage, playAgent, setNodeStage } from "./stage.ts";

const BASE = "/bottlerocket-node-resource";
const drainOnce = ({ call }: NodeStage, agent: Agent): Promise<NodeAnswer> =>
  call(agent, `POST ${BASE}/cordon-and-drain`);

async function start(t: Parameters<typeof setNodeStage>[0]) {
  const stage = await setNodeStage(t);
  createShadow(stage, "node-1");
  return { stage, agent: await playAgent(stage, "node-1") };
}

const progress = (stage: NodeStage): unknown => dig(stage.shadow("node-1"), "status", "drain");

describe("giving a node back", () => {
  it("undoes the cordon, the exclusion and the progress together", async (t) => {
    const { stage, agent } = await start(t);
    const before = stage.node("node-1");
    assert.equal((await stage.call(agent, `POST ${BASE}/exclude-from-lb`)).status, 200);
    const label = "node.kubernetes.io/exclude-from-external-load-balancers";
    assert.partialDeepStrictEqual(stage.node("node-1"), {
      metadata: { labels: { [label]: "True" } },
      spec: { unschedulable: true },
    });
    await drainOnce(stage, agent);
    assert.equal((await stage.call(agent, `POST ${BASE}/uncordon`)).status, 200);
    const { labels, annotations } = stage.node("node-1").metadata;
    assert.deepEqual(
      [labels, annotations ?? {}, stage.node("node-1")["spec"]],
      [before.metadata.labels, {}, before["spec"]],
    );
    assert.equal(progress(stage), undefined);
  });

  it("leaves a person's cordon, also after a drain", async (t) => {
    const { stage, agent } = await start(t);
    stage.emulator.store.update("nodes", { ...stage.node("node-1"), spec: { unschedulable: true } });
    assert.equal((await drainOnce(stage, agent)).status, 200);
    assert.equal((await stage.call(agent, `POST ${BASE}/uncordon`)).status, 200);
    assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), true);
  });

  it("of the exclusion alone leaves the cordon", async (t) => {
    const { stage, agent } = await start(t);
    const before = stage.node("node-1");
    await stage.call(agent, `POST ${BASE}/exclude-from-lb`);
    assert.equal((await stage.call(agent, `POST ${BASE}/remove-exclusion-from-lb`)).status, 200);
    assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), true);
    assert.deepEqual(stage.node("node-1").metadata.labels, before.metadata.labels);
  });

  it("is refused while the node is not Ready, and not for long", async (t) => {
    const { stage, agent } = await start(t);
    const setReady = (status: string): void => {
      const conditions = [{ type: "Ready", status }];
      stage.emulator.store.update("nodes", {
        ...stage.node("node-1"),
        status: { ...(stage.node("node-1")["status"] as object), conditions },
      });
    };
    await stage.call(agent, `POST ${BASE}/exclude-from-lb`);
    for (const status of ["False", "Unknown"]) {
      setReady(status);
      for (const route of ["uncordon", "remove-exclusion-from-lb"]) {
        const answer = await stage.call(agent, `POST ${BASE}/${route}`);
        assert.equal(answer.status, 409);
        assert.match(JSON.stringify(answer.body), /node-1 is not Ready: it stays cordoned until it is/);
      }
      assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), true);
    }
    setReady("True");
    assert.equal((await stage.call(agent, `POST ${BASE}/uncordon`)).status, 200);
    assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), undefined);
    setReady("False");
    assert.equal((await stage.call(agent, `POST ${BASE}/uncordon`)).status, 200, "there is nothing to give back");
  });

  it("is refused once a reboot is announced", async (t) => {
    const stage = await setNodeStage(t);
    createShadow(stage, "node-1", { status: { rebooting: { boot_id: "b-1", at: "2026-01-01T00:00:00Z" } } });
    const agent = await playAgent(stage, "node-1");
    for (const route of ["uncordon", "remove-exclusion-from-lb"])
      assert.equal((await stage.call(agent, `POST ${BASE}/${route}`)).status, 409);
  });

  it("is repeated if the node changes meanwhile", async (t) => {
    const { stage, agent } = await start(t);
    await drainOnce(stage, agent);
    stage.emulator.faults.inject({ verb: "patch", resource: "nodes", effect: { kind: "conflict" }, times: 2 });
    assert.equal((await stage.call(agent, `POST ${BASE}/uncordon`)).status, 200);
    assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), undefined);
  });
});
