/** Lifecycle conditions on the embedded cluster: through a whole update, over kills, and beside somebody else's. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../../emulator/store.ts";
import { NODES, type NodeStage, setFleet, statusOf, stepAgent } from "./stage.ts";

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
}
const conditionsOf = (on: NodeStage, name: string): readonly Condition[] => {
  const node = on.emulator.store.get("nodes", undefined, name) as KubeObject & {
    status?: { conditions?: Condition[] };
  };
  return (node.status?.conditions ?? []).filter(({ type }) => type !== "Ready");
};
const trueOf = (on: NodeStage, name: string): string[] =>
  conditionsOf(on, name).flatMap(({ type, status }) => (status === "True" ? [type] : []));

function say(on: NodeStage, name: string, condition: Condition): void {
  const node = on.emulator.store.get("nodes", undefined, name) as KubeObject & { status?: { conditions?: object[] } };
  const others = (node.status?.conditions ?? []).filter((one) => (one as Condition).type !== condition.type);
  on.emulator.store.update("nodes", { ...node, status: { ...node.status, conditions: [...others, condition] } });
}

/** The nodes with an Event that says that somebody else works on them. */
const heldOf = (on: NodeStage): string[] =>
  on.emulator.store
    .list("events")
    .map((event) => event as unknown as Event)
    .filter(({ reason, message }) => reason === "UpdateHeld" && /^InMaintenance: .*\(Repair\)/.test(message))
    .map(({ involvedObject }) => involvedObject.name)
    .toSorted();

interface Event {
  readonly reason: string;
  readonly message: string;
  readonly involvedObject: { readonly name: string };
}

/** Ticks and lets the agents go on, until nothing changes any more. */
async function play(on: NodeStage, each: () => void = () => {}): Promise<void> {
  for (let round = 0; round < 60; round++) {
    const acted = await on.tick();
    each();
    for (const node of NODES) stepAgent(on, node);
    await on.time.advance(70_000);
    if (!acted && statusOf(on).active.length === 0 && round > 3) return;
  }
}

describe("lifecycle conditions of nodes", { timeout: 120_000 }, () => {
  it("follow the phase of each node, at every tick, also of a process that has just started", async (t) => {
    const on = await setFleet(t, { lifecycleConditions: true });
    const seen = new Set<string>();
    await play(on, () => {
      const active = new Set(statusOf(on).active.map(({ node }) => node));
      for (const name of NODES) {
        const types = trueOf(on, name);
        if (!active.has(name)) assert.deepEqual(types, [], `${name} is not updated`);
        for (const type of types) seen.add(type);
      }
      on.restart();
    });
    assert.equal(statusOf(on).nodes.upToDate, 3);
    assert.ok(seen.has("MaintenancePlanned") && seen.has("DrainInProgress"), [...seen].join());
    for (const name of NODES) assert.deepEqual(trueOf(on, name), []);
    on.calls.length = 0;
    await on.tick();
    assert.deepEqual(
      on.calls.filter((call) => !call.startsWith("GET")),
      [],
    );
  });

  it("that a killed process has left are cleared by the next one, also of a node that is not managed", async (t) => {
    const on = await setFleet(t, { lifecycleConditions: true });
    await play(on);
    for (const type of ["DrainInProgress", "MaintenanceInProgress"])
      say(on, "node-1", { type, status: "True", reason: "ZonewiseNodeUpdate" });
    on.restart();
    await on.tick();
    assert.deepEqual(trueOf(on, "node-1"), []);
  });

  it("of somebody else keep the node from a start, and are left as they are", async (t) => {
    const on = await setFleet(t, { lifecycleConditions: true });
    for (const name of NODES.slice(1))
      say(on, name, { type: "MaintenanceInProgress", status: "True", reason: "Repair" });
    let most = 0;
    await play(on, () => (most = Math.max(most, statusOf(on).active.length)));
    assert.equal(most, 0, "with a limit of one, the nodes that somebody else maintains are enough");
    const waits = statusOf(on).waiting.find(({ node }) => node === "node-2");
    assert.match(
      `${waits?.reason} ${waits?.message}`,
      /InMaintenance .*MaintenanceInProgress of somebody else \(Repair\)/,
    );
    assert.deepEqual(
      conditionsOf(on, "node-2").map(({ status, reason }) => [status, reason]),
      [["True", "Repair"]],
    );
    assert.deepEqual(heldOf(on), ["node-2", "node-3"], "one Event a node, however often it is looked at");
    for (const name of NODES.slice(1))
      say(on, name, { type: "MaintenanceInProgress", status: "False", reason: "Repair" });
    await play(on);
    assert.equal(statusOf(on).nodes.upToDate, 3);
  });

  it("are neither read nor written unless they are switched on", async (t) => {
    const on = await setFleet(t);
    say(on, "node-2", { type: "MaintenanceInProgress", status: "True", reason: "Repair" });
    await play(on);
    assert.equal(statusOf(on).nodes.upToDate, 3);
    assert.deepEqual(heldOf(on), []);
    assert.ok(!on.calls.some((call) => call.includes("nodes object status")));
    assert.deepEqual(conditionsOf(on, "node-1"), []);
  });
});
