/** What the CLI tells of a PhasedRollout, by what the real ticks have recorded of it. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { PHASED_RULES, type PhasedReason } from "../../../cli/decide/explain-phased.ts";
import type { QueryAnswer } from "../../../infra/prometheus/answer.ts";
import {
  applySet,
  createRollout,
  FIRING,
  PHASED,
  setPhasedStage,
  type PhasedStage,
} from "../../reconciler/phased/act/stage.ts";
import { amend, drop } from "../../builders/objects.ts";
import { define } from "../../demo/definitions.ts";
import { openTerminal } from "../stage.ts";

/** The StatefulSet `db` of three pods, managed, and all its pods up to date. */
async function setUp(options: Parameters<typeof createRollout>[1] = {}): Promise<PhasedStage> {
  const stage = await setPhasedStage();
  await define(stage.emulator.store, ["rolloutgroups"]);
  await applySet(stage, "x:1");
  createRollout(stage, options);
  await stage.tickFor(20);
  return stage;
}

async function toStep(stage: PhasedStage, status: string, partition: number): Promise<void> {
  for (let i = 0; i < 200; i++) {
    const step = stage.rollout().status.rollingPodStatus;
    if (step?.status === status && step.partition === partition) return;
    await stage.tickFor(1);
  }
  assert.fail(`it is not at ${status} ${partition}: ${JSON.stringify(stage.rollout().status)}`);
}

for (const flags of ["", " --watch"])
  it(`status ends with 4 where PhasedRollouts may not be read, as they may not be done:${flags || " once"}`, async (t) => {
    const stage = await setUp();
    t.after(() => stage.close());
    const { run } = await openTerminal(t, stage);
    assert.equal((await run("status --watch=false")).code, 0);
    stage.emulator.faults.inject({ verb: "list", resource: PHASED, effect: { kind: "forbidden" } });
    const { code, err } = await run(`status${flags}`);
    assert.equal(code, 4);
    assert.match(err, /^PhasedRollouts are not shown: .*forbidden/);
  });

interface Wait {
  readonly reason: PhasedReason;
  readonly why: RegExp;
  readonly check?: object;
  readonly partition?: number;
  readonly answer?: QueryAnswer;
}

const WAITS: readonly Wait[] = [
  {
    reason: "WaitForInitialDelay",
    why: /partition 3 of 3: no pod is released yet, db-2 is the next; 0 of 2 consecutive/,
    check: { initialDelaySeconds: 30 },
  },
  {
    reason: "WaitForChecks",
    why: /partition 2 of 3: db-2 is released, db-1 is the next; 1 of 2 consecutive passes/,
    partition: 2,
  },
  {
    reason: "PrometheusError",
    why: /Unreachable: nobody/,
    answer: { kind: "Error", code: "Unreachable", message: "nobody" },
  },
] as const;

for (const { reason, why, check = {}, answer, partition = 3 } of WAITS)
  it(
    `explain and status tell of ${reason}: partition, why, rule, remedy and next check`,
    { timeout: 300_000 },
    async (t) => {
      const stage = await setUp({ check });
      t.after(() => stage.close());
      const { run, json } = await openTerminal(t, stage);
      if (answer) stage.answer = answer;
      await applySet(stage, "x:2");
      await toStep(stage, reason, partition);
      const { code, out } = await run("explain sts/db");
      assert.equal(code, 1);
      assert.match(out, new RegExp(`^statefulset/db\\n  roll out: no  ${reason}\\n`));
      assert.match(out, why);
      assert.ok(out.includes(PHASED_RULES[reason].rule), out);
      assert.match(out, /fix +.*\n +.*\n +zonewise -n default promote guard$/m);
      assert.match(out, /^ +next +(?:in |now)/m);
      const pod = await run("explain pod/db-0");
      assert.match(
        pod.out,
        new RegExp(
          `roll out: no  ${reason}\\n +why +db-0 is below partition ${partition} of db, and ${partition - 1} pods? go`,
        ),
      );
      const overview = await run("status");
      assert.equal(overview.code, 3);
      assert.match(
        overview.out,
        new RegExp(`^guard +db +Rolling +${partition}/3 +${3 - partition}/3 +${reason} `, "m"),
      );
      const [value] = await json<{ kind: string; progress: string; holds: object[] }[]>("status");
      assert.deepEqual(
        [value?.kind, value?.progress, value?.holds],
        ["PhasedRollout", "going", [{ reason, phase: "Waiting" }]],
      );
    },
  );

it("a rollout that has stalled is told with what helps, and ends the wait with 1", { timeout: 300_000 }, async (t) => {
  const stage = await setUp({ check: { failureThreshold: 2 } });
  t.after(() => stage.close());
  const { run } = await openTerminal(t, stage);
  stage.answer = FIRING;
  await applySet(stage, "x:2");
  await stage.tickFor(60);
  assert.match(
    (await run("explain db")).out,
    /roll out: no {2}ChecksFailed\n.*2 consecutive failures, the last with up 0/,
  );
  const { code, out } = await run("status --watch");
  assert.equal(code, 1);
  assert.match(out, /^phasedrollout\/guard Stalled: /);
});

it("RolloutStalled says why: what the late step waits for, or the last bad answer", { timeout: 300_000 }, async (t) => {
  const CASES = [
    {
      spec: {},
      check: { failureThreshold: 2 },
      why: /^2 checks in a row have failed \(up 0\): the rollout of db stays at partition 3$/,
    },
    {
      spec: { progressDeadlineSeconds: 30 },
      check: { initialDelaySeconds: 0, periodSeconds: 10 },
      why: /^the step at partition 3 takes longer than 30 s: the last check has failed \(up 0\)$/,
    },
    {
      spec: { progressDeadlineSeconds: 30 },
      check: { initialDelaySeconds: 600 },
      why: /^the step at partition 3 takes longer than 30 s: the check has not passed \d times in a row$/,
    },
  ];
  for (const { spec, check, why } of CASES) {
    const stage = await setUp({ spec, check });
    t.after(() => stage.close());
    stage.answer = FIRING;
    await applySet(stage, "x:2");
    await stage.tickFor(60);
    const stalled = stage.events.find(({ reason }) => reason === "RolloutStalled");
    assert.match(stalled?.message ?? "", why);
  }
});

it("what was recorded before the latest template is not taken for the answer", { timeout: 300_000 }, async (t) => {
  const stage = await setUp();
  t.after(() => stage.close());
  const { run } = await openTerminal(t, stage);
  assert.equal((await run("status")).code, 0);
  assert.match((await run("explain db")).out, /Updated: {2}all pods of db are at revision/);
  await applySet(stage, "x:2");
  await stage.time.advance(500);
  assert.match((await run("explain db")).out, /roll out: no {2}Unseen/);
  assert.equal((await run("status")).code, 3);
});

it(
  "a StatefulSet that is being deleted is told as the reconciler has recorded it, and ends the wait",
  { timeout: 300_000 },
  async (t) => {
    const stage = await setUp();
    t.after(() => stage.close());
    const { run } = await openTerminal(t, stage);
    const { store } = stage.emulator;
    amend(store, "StatefulSet", "db", { metadata: { finalizers: ["example.com/backup"] } });
    drop(store, "StatefulSet", "db");
    await stage.tickFor(10);
    assert.match((await run("explain phased/guard")).out, /ErrorSTSNotFound\n +why +StatefulSet db is being deleted/);
    assert.equal((await run("status")).code, 1);
  },
);

it("doctor warns of a definition that the removal of the original would delete", { timeout: 300_000 }, async (t) => {
  const stage = await setUp();
  t.after(() => stage.close());
  const { run } = await openTerminal(t, stage);
  assert.doesNotMatch((await run("doctor")).out, /definition-owner/);
  const annotations = { "meta.helm.sh/release-name": "sts-plus" };
  amend(stage.emulator.store, "CustomResourceDefinition", "phasedrollouts.sts.plus", { annotations });
  assert.match(
    (await run("doctor")).out,
    /customresourcedefinition\/phasedrollouts\.sts\.plus.*release-name=sts-plus/s,
  );
});

it("doctor calls no StatefulSet unmanaged where PhasedRollouts may not be read", async (t) => {
  const stage = await setUp();
  t.after(() => stage.close());
  const { run } = await openTerminal(t, stage);
  stage.emulator.faults.inject({ verb: "list", resource: PHASED, effect: { kind: "forbidden" } });
  const { code, out } = await run("doctor");
  assert.match(out, /not checked: PhasedRollouts/);
  assert.doesNotMatch(out, /phased-claim/);
  assert.equal(code, 4);
});

it("a StatefulSet that nobody manages is told as such", { timeout: 300_000 }, async (t) => {
  const stage = await setUp({ spec: { targetRef: "none" } });
  t.after(() => stage.close());
  const { run } = await openTerminal(t, stage);
  assert.match(
    (await run("explain db")).out,
    /Not managed by Zonewise: {2}it is in no rollout group and no PhasedRollout targets it: its own controller/,
  );
});

it("promote skips the checks of this step, once, and of no later one", async (t) => {
  const stage = await setUp({ check: { initialDelaySeconds: 600 } });
  t.after(() => stage.close());
  await applySet(stage, "x:2");
  await toStep(stage, "WaitForInitialDelay", 3);
  const { run } = await openTerminal(t, stage);
  const promoted = (): unknown =>
    stage.emulator.store.get(PHASED, "default", "guard")?.metadata.annotations?.["sts.plus/promote-step"];
  assert.match((await run("promote guard --dry-run")).out, /\(dry run\)$/m);
  assert.equal(promoted(), undefined);
  amend(stage.emulator.store, "PhasedRollout", "guard", { spec: { finalCheck: true } });
  assert.match((await run("promote guard")).err, /has not seen the latest spec of default\/guard yet/);
  assert.equal(promoted(), undefined);
  await stage.tickFor(1);
  const { code, out } = await run("promote guard");
  assert.deepEqual([code, out], [0, "default/guard skips the checks of db at partition 3\n"]);
  assert.equal((await run("promote phasedrollout/guard")).out, "default/guard was promoted at partition 3 already\n");
  await toStep(stage, "WaitForInitialDelay", 2);
  await stage.tickFor(30);
  assert.equal(stage.rollout().status.rollingPodStatus?.partition, 2, "the next step is checked");
  const unknown = await run("promote guar");
  assert.match(unknown.err, /no PhasedRollout "guar" in namespace default\n +did you mean guard\?/);
});
