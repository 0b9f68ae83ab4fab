/** The agent's loop against a simulated host, the node API and the embedded cluster. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type AgentStage, NODE, setAgentStage, untilTrue } from "./stage.ts";

async function reach(stage: AgentStage, wanted: Parameters<AgentStage["want"]>[0]): Promise<void> {
  stage.want(wanted);
  await untilTrue(() => stage.state() === wanted);
}

async function stageUp(stage: AgentStage): Promise<void> {
  stage.startAgent();
  await untilTrue(() => stage.state() === "Idle");
  await reach(stage, "StagedAndPerformedUpdate");
}

// They mostly wait, for the rounds of the agent.
describe("an agent", { concurrency: true }, () => {
  it("brings its node through an update: drained before the reboot, given back after it", async (t) => {
    const stage = await setAgentStage(t);
    stage.createPod("a-0");
    await stageUp(stage);
    assert.equal(stage.status("target_version"), "1.1.0");
    assert.equal(
      (stage.node(NODE)["spec"] as { unschedulable?: boolean }).unschedulable,
      undefined,
      "staging needs no cordon",
    );
    stage.want("RebootedIntoUpdate");
    await untilTrue(() => stage.host.facts().reboots === 1);
    assert.deepEqual(stage.lost, []);
    // A new pod of the agent comes with the host.
    await untilTrue(() => stage.host.facts().isUp);
    stage.startAgent();
    await untilTrue(() => stage.state() === "RebootedIntoUpdate");
    assert.equal((stage.node(NODE)["spec"] as { unschedulable?: boolean }).unschedulable, undefined);
    await reach(stage, "MonitoringUpdate");
    await reach(stage, "Idle");
    assert.deepEqual(
      stage.host.actions.filter((action) => action !== "refresh"),
      ["prepare", "activate", "reboot"],
    );
    assert.equal(stage.status("current_version"), "1.1.0");
    assert.equal(stage.status("rebooting"), undefined);
    assert.equal(stage.host.facts().reboots, 1);
  });

  it("reports that it is back although its node is not Ready, leaves it cordoned, and gives it back with the next state", async (t) => {
    const stage = await setAgentStage(t);
    const setReady = (status: string): void => {
      const { store } = stage.emulator;
      store.update("nodes", {
        ...stage.node(NODE),
        status: { ...(stage.node(NODE)["status"] as object), conditions: [{ type: "Ready", status }] },
      });
    };
    const isCordoned = (): boolean => (stage.node(NODE)["spec"] as { unschedulable?: boolean }).unschedulable === true;
    await stageUp(stage);
    stage.want("RebootedIntoUpdate");
    await untilTrue(() => stage.host.facts().reboots === 1);
    setReady("False");
    await untilTrue(() => stage.host.facts().isUp);
    stage.startAgent();
    await untilTrue(() => stage.state() === "RebootedIntoUpdate");
    assert.ok(isCordoned());
    stage.want("MonitoringUpdate");
    await untilTrue(() => stage.asked.filter((call) => call === "uncordon 409").length > 2);
    assert.deepEqual([stage.state(), isCordoned()], ["RebootedIntoUpdate", true]);
    setReady("True");
    await untilTrue(() => stage.state() === "MonitoringUpdate");
    assert.ok(!isCordoned());
  });

  it("keeps asking while a pod stays, and takes the cordon back once the reboot is no longer wanted", async (t) => {
    const stage = await setAgentStage(t);
    stage.emulator.faults.inject({
      resource: "pods",
      subresource: "eviction",
      effect: { kind: "tooMany", retryAfterSeconds: 60 },
    });
    stage.createPod("a-0");
    await stageUp(stage);
    stage.want("RebootedIntoUpdate");
    await untilTrue(() => stage.asked.filter((call) => call === "cordonAndDrain 503").length > 3);
    assert.deepEqual(
      [stage.host.facts().reboots, stage.status("drain", "remaining"), stage.status("crash_count")],
      [0, 1, 0],
    );
    await reach(stage, "Idle");
    assert.deepEqual(stage.node(NODE).metadata.annotations ?? {}, {});
    assert.equal(stage.host.facts().reboots, 0);
  });

  it("excludes its node from load balancers once, and only then drains it", async (t) => {
    const stage = await setAgentStage(t);
    stage.createPod("a-0");
    stage.startAgent({ exclusionMs: 20 });
    await untilTrue(() => stage.state() === "Idle");
    await reach(stage, "StagedAndPerformedUpdate");
    stage.want("RebootedIntoUpdate");
    await untilTrue(() => stage.host.facts().reboots === 1);
    const calls = stage.asked.filter((call) => call.startsWith("exclude") || call.startsWith("cordon"));
    assert.deepEqual([calls[0], calls.filter((call) => call.startsWith("exclude")).length], ["excludeFromLb 200", 1]);
  });

  it("whose reboot is refused by the host reports it, and the node is given back", async (t) => {
    const stage = await setAgentStage(t);
    stage.host.fail("reboot", 500);
    await stageUp(stage);
    stage.want("RebootedIntoUpdate");
    await untilTrue(() => stage.state() === "ErrorReset");
    assert.equal(stage.status("rebooting"), undefined);
    await reach(stage, "Idle");
    assert.deepEqual(stage.node(NODE).metadata.annotations ?? {}, {});
  });

  it("waits for a host that is busy with another's action in the middle of a drain, and then goes on", async (t) => {
    const stage = await setAgentStage(t);
    await stageUp(stage);
    stage.host.lock(true);
    stage.want("RebootedIntoUpdate");
    await untilTrue(() => stage.entries.filter(({ msg }) => msg === "the host is busy").length > 1);
    assert.deepEqual([stage.status("crash_count"), stage.host.facts().reboots], [0, 0]);
    stage.host.lock(false);
    await untilTrue(() => stage.host.facts().reboots === 1);
    assert.equal(stage.status("crash_count"), 0);
  });

  it("of a host that does not answer reports nothing, and goes on once it does", async (t) => {
    const stage = await setAgentStage(t, { rebootMs: 1000 });
    await stageUp(stage);
    void stage.host.reboot();
    await untilTrue(() => stage.entries.some(({ msg }) => msg.startsWith("the round failed")));
    await untilTrue(() => stage.host.facts().isUp);
    await untilTrue(() => stage.status("boot_id") === stage.host.facts().bootId);
    assert.deepEqual([stage.status("current_version"), stage.state()], ["1.1.0", "StagedAndPerformedUpdate"]);
  });
});
