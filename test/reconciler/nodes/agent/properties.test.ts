/**
 * Whatever agents, API servers, hosts and controllers do: no reboot while a pod that could be evicted is on the node.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../../../infra/clock.ts";
import { hash } from "node:crypto";
import { either } from "../../../runs.ts";
import { type AgentStage, NODE, setAgentStage, untilTrue } from "./stage.ts";

/** Numbers from 0 to `below`, the same for the same seed. */
function drawFrom(seed: number): (below: number) => number {
  let drawn = 0;
  return (below) => hash("sha256", `${seed}:${drawn++}`, "buffer").readUInt32BE() % below;
}

const WANTED = ["StagedAndPerformedUpdate", "RebootedIntoUpdate", "MonitoringUpdate", "Idle"] as const;

/** The controller: forward if the state is reached, to Idle after a failure, and now and then back without a reason. */
function advance(stage: AgentStage, draw: (below: number) => number): void {
  const wanted = (stage.shadow(NODE)?.["spec"] as { state?: string } | undefined)?.state ?? "";
  const reported = stage.state();
  if (reported === "ErrorReset" || (draw(12) === 0 && !stage.status("rebooting"))) return stage.want("Idle");
  if (reported !== wanted) return;
  const next = WANTED[(WANTED.findIndex((state) => state === wanted) + 1) % WANTED.length];
  if (next !== "StagedAndPerformedUpdate" || stage.status("current_version") !== "1.1.0") stage.want(next ?? "Idle");
}

for (let seed = 1; seed <= either(8, 2); seed++)
  it(`no reboot meets a pod that could be evicted, and the update ends (seed ${seed})`, async (t) => {
    const draw = drawFrom(seed);
    const stage = await setAgentStage(t, { actionMs: { prepare: 20 }, rebootMs: 30 });
    const { faults } = stage.emulator;
    let agent = stage.startAgent();
    let pods = 0;
    for (let step = 0; step < 60; step++) {
      const kind = draw(9);
      const isSchedulable = (stage.node(NODE)["spec"] as { unschedulable?: boolean }).unschedulable !== true;
      if (kind === 0 && isSchedulable) stage.createPod(`p-${pods++}`);
      else if (kind === 1) {
        await Promise.race([agent.kill(), systemClock.sleep(200)]);
        agent = stage.startAgent();
      } else if (kind === 2)
        faults.inject({ verb: "patch", effect: { kind: draw(2) === 0 ? "conflict" : "dropAfter" }, times: 1 });
      else if (kind === 3)
        faults.inject({ resource: "pods", subresource: "eviction", effect: { kind: "dropAfter" }, times: 1 });
      else if (kind === 4) faults.inject({ effect: { kind: "error" }, times: 1 });
      else if (kind === 5 && draw(4) === 0) stage.host.fail(draw(2) === 0 ? "prepare" : "activate");
      else advance(stage, draw);
      await systemClock.sleep(10 + draw(40));
    }
    faults.clear();
    await agent.kill();
    await untilTrue(() => stage.host.facts().isUp);
    agent = stage.startAgent();
    for (let round = 0, { reboots } = stage.host.facts(); round < 400 && !isDone(stage); round++) {
      advance(stage, () => 1);
      if (stage.host.facts().reboots !== reboots) {
        ({ reboots } = stage.host.facts());
        await agent.kill();
        await untilTrue(() => stage.host.facts().isUp);
        agent = stage.startAgent();
      }
      await systemClock.sleep(20);
    }
    assert.deepEqual(stage.lost, [], stage.asked.join("\n"));
    assert.ok(isDone(stage), JSON.stringify([stage.shadow(NODE), stage.asked.slice(-20)]));
  });

function isDone(stage: AgentStage): boolean {
  const spec = stage.shadow(NODE)?.["spec"] as { state?: string } | undefined;
  const isBack = Object.keys(stage.node(NODE).metadata.annotations ?? {}).length === 0;
  return isBack && spec?.state === "Idle" && stage.state() === "Idle" && stage.status("current_version") === "1.1.0";
}
