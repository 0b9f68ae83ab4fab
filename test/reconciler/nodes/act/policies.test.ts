/** The policy comes, changes and goes while nodes are being updated. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  changePolicy,
  createPolicy,
  eventsOf,
  NODES,
  type NodeStage,
  removePolicy,
  setFleet,
  shadowOf,
  statesOf,
  statusOf,
  stepAgent,
} from "./stage.ts";
import { findPolicy } from "../../../../functions/nodes/shadow.ts";
import type { KubeObject } from "../../../emulator/store.ts";
import { amend } from "../../../builders/objects.ts";

const POLICIES = "nodeupdatepolicies.zonewise.dev";
const SHADOWS = "bottlerocketshadows.brupop.bottlerocket.aws";
const names = (on: NodeStage): string[] => on.emulator.store.list(POLICIES).map(({ metadata }) => metadata.name);

/** Ticks and lets the agents report, a minute a round. */
async function play(on: NodeStage, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    await on.tick();
    for (const node of NODES) stepAgent(on, node);
    await on.time.advance(60_000);
  }
}

/** node-1 is wanted to reboot, its agent drains it, and it is cordoned by us. */
async function drainFirst(on: NodeStage): Promise<void> {
  for (let round = 0; round < 20 && shadowOf(on, "node-1")?.spec.state !== "RebootedIntoUpdate"; round++) {
    await on.tick();
    if (shadowOf(on, "node-1")?.spec.state !== "RebootedIntoUpdate") for (const node of NODES) stepAgent(on, node);
  }
  const annotations = { "zonewise.dev/cordoned-by": shadowOf(on, "node-1")?.metadata.uid ?? "" };
  amend(on.emulator.store, "Node", "node-1", { annotations, spec: { unschedulable: true } });
}

const policyOf = (on: NodeStage) =>
  findPolicy({ cluster: on.cluster, node: { metadata: { name: "node-1" } }, call: {} });

const isCordoned = (on: NodeStage): boolean =>
  (on.emulator.store.get("nodes", undefined, "node-1") as unknown as { spec?: { unschedulable?: boolean } }).spec
    ?.unschedulable === true;

describe("the policy default", () => {
  it("is made from the original's variables if there has never been a policy", async (t) => {
    const on = await setFleet(t, { defaultSpec: { maxConcurrent: "2", window: { cron: "* * 2-4 * * *" } } });
    await on.tick();
    const { spec } = on.emulator.store.get(POLICIES, undefined, "default") as unknown as {
      spec: Record<string, unknown>;
    };
    assert.deepEqual([names(on), spec["maxConcurrent"]], [["default"], "2"]);
  });

  it("is not made again once it was deleted, whatever process looks: a person wants no updates", async (t) => {
    const on = await setFleet(t);
    await on.tick();
    removePolicy(on);
    on.restart();
    await play(on, 3);
    assert.deepEqual(names(on), []);
  });

  it("may be made by two installations at the same time", async (t) => {
    const on = await setFleet(t);
    const first = on.tick();
    on.restart();
    await Promise.all([first, on.tick()]);
    assert.deepEqual(names(on), ["default"]);
    assert.deepEqual(
      on.logged.filter((line) => line.includes('"level":"warn"')),
      [],
    );
  });
});

describe("a policy that is deleted while its nodes are updated", () => {
  it("leaves no node cordoned by us, and none that goes on to its reboot", async (t) => {
    const on = await setFleet(t);
    createPolicy(on);
    await drainFirst(on);
    assert.deepEqual([statesOf(on)[0], isCordoned(on)], ["RebootedIntoUpdate", true]);
    removePolicy(on);
    await on.tick();
    assert.deepEqual(statesOf(on), ["Idle", "Idle", "Idle"]);
    await on.tick();
    assert.equal(isCordoned(on), false);
  });

  it("does not let a node reboot that its freeze stopped, as it is made again", async (t) => {
    const on = await setFleet(t);
    const { store } = on.emulator;
    createPolicy(on);
    await drainFirst(on);
    const policy = store.get(POLICIES, undefined, "default") as KubeObject;
    const frozen = { id: "f1", at: "2026-01-01T00:00:00Z", reason: "RebootTimeout", message: "node-9 is lost" };
    store.update(POLICIES, { ...policy, status: { ...statusOf(on), frozen } });
    removePolicy(on);
    createPolicy(on);
    // The status is written first: what if the shadow's write is lost?
    const heal = on.emulator.faults.inject({ verb: "patch", resource: SHADOWS, effect: { kind: "forbidden" } });
    await on.tick();
    assert.deepEqual(
      statusOf(on).active.map(({ node, ending }) => [node, ending?.reason]),
      [["node-1", "TakenOver"]],
    );
    assert.deepEqual([statesOf(on)[0], await policyOf(on)], ["RebootedIntoUpdate", undefined]);
    heal();
    await on.tick();
    assert.deepEqual(statesOf(on), ["Idle", "Idle", "Idle"]);
    assert.equal(await policyOf(on), undefined);
  });
});

describe("a policy that is edited while its nodes are updated", () => {
  it("lets its nodes finish, and starts none, once its window cannot be read", async (t) => {
    const on = await setFleet(t);
    createPolicy(on);
    await drainFirst(on);
    changePolicy(on, { window: { cron: "61 * * * * *", timeZone: "UTC" } });
    await play(on, 12);
    const { active, skipped, nodes } = statusOf(on);
    assert.ok(eventsOf(on).includes("NodeUpdatePolicy default PolicyInvalid"));
    assert.deepEqual([active, skipped, nodes.upToDate], [[], { PolicyInvalid: 2 }, 1]);
  });
});

describe("a policy whose status is refused, as by an admission policy of others", () => {
  it("starts no node, and holds up no upkeep", async (t) => {
    const on = await setFleet(t);
    createPolicy(on);
    const heal = on.emulator.faults.inject({
      verb: "update",
      resource: POLICIES,
      subresource: "status",
      effect: { kind: "forbidden" },
    });
    await play(on, 3);
    assert.deepEqual([statesOf(on), statusOf(on).active], [["Idle", "Idle", "Idle"], []]);
    assert.match(on.logged.join("\n"), /the status of the policy was refused/);
    heal();
    await play(on, 3);
    assert.notEqual(statesOf(on)[0], "Idle");
  });
});
