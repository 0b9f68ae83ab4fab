/** The plan of a group on the embedded cluster is what the ticks then do. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { TestContext } from "node:test";
import { composeBudgets } from "../../../reconciler/budget/act/compose.ts";
import { createMayDisrupt } from "../../../reconciler/budget/act/may-disrupt.ts";
import { createLog } from "../../../infra/log.ts";
import type { Outcome } from "../../../reconciler/model/outcome.ts";
import { statefulSets } from "../../../infra/kubernetes/resources.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { amend } from "../../builders/objects.ts";
import { define } from "../../demo/definitions.ts";
import { setBudgetStage, writeBudget } from "../../reconciler/budget-stage.ts";
import { deploy, tickOnce, type Stage } from "../../reconciler/stage.ts";
import { witness } from "../../reconciler/witness.ts";
import { describeEnd } from "../../../cli/commands/plan.ts";
import { openTerminal } from "../stage.ts";

interface Planned {
  readonly end: string;
  readonly steps: readonly {
    readonly action: string;
    readonly zone: string;
    readonly pods?: readonly string[];
    readonly replicas?: number;
  }[];
}

async function setPlanStage(t: TestContext): Promise<Stage> {
  const stage = await setBudgetStage();
  t.after(() => stage.close());
  await define(stage.emulator.store, ["rolloutgroups"]);
  await stage.time.advance(1000);
  return stage;
}

/** `zone`, `pod`, or `zone=replicas`, in order. */
const namesOf = ({ steps }: Planned): string[] =>
  steps.flatMap(({ zone, pods, replicas }) => (replicas === undefined ? (pods ?? [zone]) : [`${zone}=${replicas}`]));

/** Real ticks until nothing is left, a second of the cluster's time apart. */
async function execute(stage: Stage): Promise<string[]> {
  const { cluster } = stage.connect();
  const log = createLog({ level: "error", write: () => {}, now: () => new Date(0) });
  const metrics = createMetrics();
  const { reserver } = composeBudgets({
    cluster,
    clock: stage.clock,
    log,
    identity: "reconciler",
  });
  const mayDisrupt = createMayDisrupt(reserver, stage.clock, metrics.budgets);
  const done: string[] = [];
  for (let quiet = 0; quiet < 30; quiet++) {
    const outcomes: Outcome[] = [];
    const onOutcome = (outcome: Outcome) => void outcomes.push(outcome);
    await tickOnce(stage, cluster, { mayDisrupt, takeResync: () => true, onOutcome });
    for (const outcome of outcomes) {
      if (outcome.state !== "acted") continue;
      quiet = 0;
      const { decision, effect } = outcome;
      if (decision.action === "deletePods") done.push(...effect.replaced.map(({ name }) => name));
      else
        done.push(decision.action === "scaleZone" ? `${decision.zone.name}=${decision.replicas}` : decision.zone.name);
    }
    await stage.time.advance(1000);
  }
  return done;
}

const PODS = { podLabels: { "rollout-group": "ingester" } };

it("zonewise plan has the steps that the ticks then take", { timeout: 300_000 }, async (t) => {
  const stage = await setPlanStage(t);
  const { run, json } = await openTerminal(t, stage);
  assert.deepEqual(
    [(await run("plan ingester")).out, (await run("plan ingester")).code],
    ["Nothing to do: all zones are up to date\n", 0],
  );
  writeBudget(stage, { maxUnavailable: 2 });
  deploy(stage, "x:2", { ...PODS, zones: ["a"], replicas: 4 });
  // Through the API server, whose defaults in the template make another revision.
  const annotations = { "grafana.com/rollout-downscale-leader": "ingester-zone-a", "rollout-max-unavailable": "2" };
  await stage.connect().cluster.patch(statefulSets, {
    namespace: "default",
    name: "ingester-zone-b",
    type: "strategic",
    body: { metadata: { annotations } },
  });
  await stage.time.advance(1000);
  const { code, out } = await run("plan ingester");
  assert.equal(code, 1);
  assert.match(out, /^STEP +WAIT +FOR +ACTION +ZONE +WHAT/);
  const planned = await json<Planned>("plan ingester");
  assert.equal(planned.end, "settled");
  const { violations } = witness(stage, 2);
  assert.deepEqual(namesOf(planned), await execute(stage));
  assert.deepEqual(violations, []);
  assert.equal((await run("plan ingester")).code, 0);
});

it("zonewise plan says where a rollout will stop, and changes nothing", { timeout: 300_000 }, async (t) => {
  const stage = await setPlanStage(t);
  const { run } = await openTerminal(t, stage);
  deploy(stage, "x:2", PODS);
  const { store } = stage.emulator;
  amend(store, "StatefulSet", "ingester-zone-b", { annotations: { "grafana.com/rollout-paused": "true" } });
  await stage.time.advance(1000);
  const writes: string[] = [];
  store.subscribe(({ type, resource, object }) => {
    // The stage's reconciler ticks on.
    if (resource !== "leases.coordination.k8s.io") writes.push(`${type} ${object.metadata.name}`);
  });
  const { code, out } = await run("plan ingester");
  assert.equal(code, 1);
  assert.match(
    out,
    /^Paused.*\. Nothing happens until:\n {2}ZonePaused: ingester-zone-b is paused with outdated pods/m,
  );
  assert.deepEqual(writes, []);
});

it("the end of a plan has an estimate only after steps", () => {
  const holds = [
    { action: "hold" as const, reason: "OtherZoneNotReady" as const, message: "a waits for b", objects: [] },
  ];
  const remaining = [{ action: "FinishZone", zone: "a" }] as const;
  const end = { end: "blocked", holds, remaining, endsAt: 60_000, lastWait: { waits: [], waitMs: 900 } } as const;
  const step = { action: "FinishZone", zone: "a", message: "", at: 0, waitMs: 0, waits: [] } as const;
  assert.equal(
    describeEnd({ ...end, steps: [] }, 0),
    "Blocked. Nothing happens until:\n  OtherZoneNotReady: a waits for b\nThen:\n  record a as updated\n",
  );
  assert.match(
    describeEnd({ ...end, steps: [step] }, 0),
    /^Blocked in about 1m, judging by past pod starts\. Nothing happens until:\n/,
  );
  const lastWait = { waits: ["GateWaiting"], waitMs: 30_000 } as const;
  assert.equal(
    describeEnd({ ...end, end: "settled", steps: [step], lastWait }, 0),
    "Done in about 1m (30s after the last step: GateWaiting), judging by past pod starts\n",
  );
});
