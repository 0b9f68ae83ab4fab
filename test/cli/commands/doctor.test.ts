/** What doctor finds of settings that were accepted and do not do what they are meant for, with the command that helps. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { define } from "../../demo/definitions.ts";
import { add, drop, type Kind, type Traits } from "../../builders.ts";
import { setBudgetStage, writeBudget } from "../../reconciler/budget-stage.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { guardEvictions } from "../guard-stage.ts";
import { openTerminal, writeLease } from "../stage.ts";

const DEFINITIONS = ["rolloutgroups", "rolloutgates", "phasedrollouts"];

describe("zonewise doctor", { timeout: 300_000 }, () => {
  let stage: Stage;
  let guard: Awaited<ReturnType<typeof guardEvictions>>;
  before(async () => {
    stage = await setBudgetStage();
    await define(stage.emulator.store, DEFINITIONS);
    writeBudget(stage);
    guard = await guardEvictions(stage);
    await stage.time.advance(1000);
  });
  after(async () => {
    guard.close();
    await stage.close();
  });

  /** Undoes a change. */
  type Undo = () => void;
  const create = (kind: Kind, name: string, traits: Traits): Undo => {
    add(stage.emulator.store, kind, name, { ...traits });
    return () => drop(stage.emulator.store, kind, name);
  };
  const all =
    (...undo: readonly Undo[]): Undo =>
    () =>
      undo.forEach((one) => one());

  const CASES: readonly (readonly [name: string, change: () => Undo, finding: RegExp])[] = [
    [
      "an eviction webhook that fails open",
      () => {
        guard.register({ webhook: { failurePolicy: "Ignore" } });
        return () => guard.register();
      },
      /^warning {2}webhookconfiguration\/pod-eviction-default: it fails open: .*\n +once the functions run:\n +kubectl patch mutatingwebhookconfiguration pod-eviction-default --type=json /,
    ],
    [
      "rights that it could not check, and what it could of the rest",
      () => {
        writeBudget(stage, { podNamePartitionRegex: "store-([0-9]+)" });
        const heal = stage.emulator.faults.inject({
          verb: "list",
          resource: "poddisruptionbudgets.policy",
          effect: { kind: "forbidden" },
        });
        return all(heal, () => writeBudget(stage));
      },
      /^error {2}zpdb\/ingester: its podNamePartitionRegex finds .*\n(?: .*\n)*warning {2}you: .*: not checked: PodDisruptionBudgets, and groups without a budget \(not-checked\)\n/,
    ],
  ];
  for (const [name, change, finding] of CASES)
    it(`finds ${name}`, async (t) => {
      const { run } = await openTerminal(t, stage);
      const undo = change();
      t.after(undo);
      assert.match((await run("doctor")).out, finding);
    });

  describe("beside the original", () => {
    const forbid = (resource: string): Undo =>
      stage.emulator.faults.inject({ verb: "get", resource, effect: { kind: "forbidden" } });
    const FOUND = /^error {2}deployment\/rollout-operator: rollout-operator serves namespace default: .*\(original\)$/m;
    const ROWS: readonly (readonly [name: string, line: string, change: () => Undo, finding: RegExp])[] = [
      ["in all namespaces", "doctor -A", () => () => {}, FOUND],
      ["where it is unknown whether the reconciler runs", "doctor", () => forbid("leases.coordination.k8s.io"), FOUND],
      [
        "where that may not be read",
        "doctor -A",
        () => forbid("deployments.apps"),
        /^warning {2}you: .*: not checked: rollout-operator in namespace default \(not-checked\)$/m,
      ],
    ];
    for (const [name, line, change, finding] of ROWS)
      it(`says so ${name}`, async (t) => {
        const { run } = await openTerminal(t, stage, { size: { columns: 1000, rows: 100 } });
        t.after(all(create("Deployment", "rollout-operator", { spec: { replicas: 1 } }), change()));
        assert.match((await run(line)).out, finding);
      });
    it("leaves it to the finding of a reconciler that is stopped", async (t) => {
      const { run } = await openTerminal(t, stage, { ticks: false });
      t.after(create("Deployment", "rollout-operator", { spec: { replicas: 1 } }));
      writeLease(stage, { holder: "", tickedMs: 3_600_000, renewedMs: 3_600_000 });
      t.after(() => writeLease(stage, {}));
      const { out } = await run("doctor");
      assert.match(out, /\(no-tick\)/);
      assert.doesNotMatch(out, /\(original\)/);
    });
  });
});
