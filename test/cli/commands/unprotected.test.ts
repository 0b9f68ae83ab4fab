/** What the commands say of an eviction webhook that cannot be called: with a budget, and without one. */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { add, amend, drop } from "../../builders/objects.ts";
import { openGuarded } from "../guard-stage.ts";

/** Nothing ticks, so that nothing is recorded. */
const open = (t: TestContext) => openGuarded(t, { definitions: ["rolloutgroups", "rolloutgates", "phasedrollouts"] });

it("status says first that the webhook is recorded to be down", async (t) => {
  const { stage, run, json } = await open(t);
  assert.doesNotMatch((await run("status")).out, /^warning/);
  const times = { observedGeneration: 1, lastTransitionTime: "2026-01-01T00:00:00Z" };
  const condition = { type: "Protecting", status: "False", reason: "WebhookDown", message: "it is down", ...times };
  const amendWith = (status: object): void =>
    amend(stage.emulator.store, "ZoneAwarePodDisruptionBudget", "ingester", { status: { conditions: [status] } });
  amendWith(condition);
  for (const line of ["status", "status ingester"])
    assert.match(
      (await run(line)).out,
      /^warning {2}it is down \(recorded for budget ingester in default\)\n +fix:\n +zonewise -n default doctor\n/,
      line,
    );
  const [group] = await json<{ unprotected: { reason: string; budgets: string[] }[] }[]>("status");
  assert.deepEqual(
    group?.unprotected.map(({ reason, budgets }) => [reason, budgets]),
    [["WebhookDown", ["ingester"]]],
  );
  amendWith({ ...condition, status: "True", reason: "Protecting" });
  assert.doesNotMatch((await run("status")).out, /^warning/);
});

it("explain and drain-order look themselves, without a budget, too: then evictions are refused, and are not allowed in a second zone", async (t) => {
  const { stage, guard, run } = await open(t);
  drop(stage.emulator.store, "ZoneAwarePodDisruptionBudget", "ingester");
  assert.match((await run("drain-order node-1")).out, /not guarded: no disruption budget/);
  for (const object of ["pod/ingester-zone-a-0", "node/node-1"]) {
    const { out, code } = await run(`explain ${object}`);
    assert.match(out, /: not judged {2}NoBudget\n.*no disruption budget selects pods of group ingester/, object);
    assert.doesNotMatch(out, /Can be/, object);
    assert.equal(code, 1, object);
  }
  const selector = { matchLabels: { "rollout-group": "ingester" } };
  add(stage.emulator.store, "PodDisruptionBudget", "all", { spec: { maxUnavailable: 1, selector } });
  for (const line of ["explain pod/ingester-zone-a-0", "drain-order node-1"])
    assert.doesNotMatch((await run(line)).out, /NoBudget|not guarded/, line);
  guard.setService({});
  const drained = await run("drain-order node-1");
  assert.match(drained.out, /waits: .*every eviction in default is refused/);
  assert.doesNotMatch(drained.out, /nothing refuses/);
  assert.equal(drained.code, 1);
  const explained = await run("explain pod/ingester-zone-a-0");
  assert.match(explained.out, /Cannot be evicted {2}WebhookDown\n/);
  assert.equal(explained.code, 1);
});
