/** explain of what guards pods, drain-order, doctor, on the embedded cluster. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { parse } from "yaml";
import { add, amend, drop } from "../../builders/objects.ts";
import { define } from "../../demo/definitions.ts";
import { setBudgetStage, writeBudget } from "../../reconciler/budget-stage.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { guardEvictions, openGuarded } from "../guard-stage.ts";
import { openTerminal, writeLease } from "../stage.ts";

const DEFINITIONS = ["rolloutgroups", "rolloutgates", "phasedrollouts"];

describe("zonewise", { timeout: 300_000 }, () => {
  let stage: Stage;
  let guard: Awaited<ReturnType<typeof guardEvictions>>;
  before(async () => {
    stage = await setBudgetStage();
    await define(stage.emulator.store, DEFINITIONS);
    writeBudget(stage, {});
    guard = await guardEvictions(stage);
    await stage.time.advance(1000);
  });
  after(async () => {
    guard.close();
    await stage.close();
  });

  it("explain asks the API server about an eviction, and evicts nothing", async (t) => {
    const { run } = await openTerminal(t, stage);
    const { store, faults } = stage.emulator;
    const well = await run("explain pod/ingester-zone-a-0");
    assert.equal(well.code, 0, well.out);
    assert.doesNotMatch(well.out, /dry-run/);
    const selector = { matchLabels: { name: "ingester-zone-a" } };
    add(store, "PodDisruptionBudget", "core", { spec: { selector, maxUnavailable: 0 } });
    await stage.time.advance(1000);
    const { code, out } = await run("explain pod/ingester-zone-a-0");
    assert.equal(code, 1, out);
    assert.match(
      out,
      /Cannot be evicted {2}Refused\n +why +the API server refuses a dry-run eviction: .*Cannot evict pod as it would/,
    );
    assert.match(
      (await run("doctor")).out,
      /warning {2}pdb\/core: it selects pods of ingester-zone-a as a zone-aware budget does/,
    );
    drop(store, "PodDisruptionBudget", "core");
    await stage.time.advance(1000);
    assert.equal(store.get("pods", "default", "ingester-zone-a-0")?.metadata.deletionTimestamp, undefined);
    t.after(faults.inject({ verb: "create", resource: "pods", effect: { kind: "forbidden", user: "ann" } }));
    assert.equal((await run("explain pod/ingester-zone-a-0")).code, 0);
  });

  it("drain-order puts nodes with pods of several zones apart, and suggests nodes", async (t) => {
    const { run, json } = await openTerminal(t, stage);
    const { code, out } = await run("drain-order node-1 node-2");
    assert.equal(code, 0, out);
    assert.match(out, /^WAVE +NODE +ZONE +PODS +NOW\n1 +node-1 +zone-1 +\d/);
    const waves = await json<{ node: string; pods: unknown[] }[][]>("drain-order node-1 node-2");
    assert.deepEqual(
      waves.flat().map(({ node }) => node),
      ["node-1", "node-2"],
    );
    assert.match((await run("drain-order node-7")).err, /no node "node-7"\n +did you mean node-1/);
  });

  it("drain-order keeps zones of a group apart that no budget guards, and does not call that safe", async (t) => {
    const { run } = await openTerminal(t, stage);
    const { store } = stage.emulator;
    const nodes = store.list("nodes").map(({ metadata }) => metadata.name);
    const guarded = await run(`drain-order ${nodes.join(" ")}`);
    drop(store, "ZoneAwarePodDisruptionBudget", "ingester");
    t.after(() => writeBudget(stage));
    const { code, out } = await run(`drain-order ${nodes.join(" ")}`);
    assert.equal(code, 1, out);
    assert.match(out, /not guarded: no disruption budget selects pods of group ingester: .*doctor proposes a budget/);
    assert.doesNotMatch(out, /\byes\b/);
    const waves = (text: string): string[] => text.split("\n").map((line) => line.slice(0, 12));
    assert.deepEqual(waves(out), waves(guarded.out));
    assert.match(out, /^3 /m);
  });

  it("drain-order reads a group once for all its zones, and says once what it assumes of it", async (t) => {
    const { run } = await openTerminal(t, stage);
    const { store } = stage.emulator;
    const { metadata } = store.get("statefulsets.apps", "default", "ingester-zone-b") ?? assert.fail();
    const annotations = { "grafana.com/rollout-downscale-leader": "ingester-zone-a" };
    amend(store, "StatefulSet", "ingester-zone-b", { annotations });
    const { err } = await run("drain-order node-1 node-2");
    assert.equal(err.split("assuming the default").length, 2, err);
    amend(store, "StatefulSet", "ingester-zone-b", { metadata: { annotations: metadata.annotations ?? {} } });
  });

  it("doctor finds nothing wrong, then what was half configured", async (t) => {
    const { run } = await openTerminal(t, stage);
    const well = await run("doctor");
    assert.deepEqual([well.code, well.err], [0, ""]);
    assert.equal(well.out, "no problems found\n");
    writeBudget(stage, { selector: { matchLabels: { nobody: "has" } } }, "second");
    const { code, out } = await run("doctor");
    assert.equal(code, 1);
    assert.match(out, /^error {2}zpdb\/second: it selects no StatefulSet/);
    const { store } = stage.emulator;
    drop(store, "ZoneAwarePodDisruptionBudget", "second");
    add(store, "Deployment", "rollout-operator", { spec: { replicas: 1 } });
    const both = /error {2}deployment\/rollout-operator: rollout-operator serves namespace default: /;
    assert.match((await run("doctor")).out, both);
    amend(store, "Deployment", "rollout-operator", { spec: { replicas: 0 } });
    assert.doesNotMatch((await run("doctor")).out, both);
    drop(store, "Deployment", "rollout-operator");
  });

  it("doctor says what it could not check for want of rights, and what it could of the rest", async (t) => {
    const { run } = await openTerminal(t, stage);
    writeBudget(stage, { podNamePartitionRegex: "store-([0-9]+)" });
    t.after(() => writeBudget(stage));
    t.after(
      stage.emulator.faults.inject({
        verb: "list",
        resource: "poddisruptionbudgets.policy",
        effect: { kind: "forbidden" },
      }),
    );
    assert.match(
      (await run("doctor")).out,
      /^error {2}zpdb\/ingester: its podNamePartitionRegex finds .*\n(?: .*\n)*warning {2}you: .*: not checked: PodDisruptionBudgets, and groups without a budget \(not-checked\)\n/,
    );
  });

  it("doctor calls no group unprotected where disruption budgets may not be read", async (t) => {
    const { run } = await openTerminal(t, stage);
    t.after(
      stage.emulator.faults.inject({
        verb: "list",
        resource: "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com",
        effect: { kind: "forbidden" },
      }),
    );
    const { code, out } = await run("doctor");
    assert.match(out, /not checked: disruption budgets/);
    assert.doesNotMatch(out, /group-without-budget/);
    assert.equal(code, 4);
  });

  describe("doctor beside the original", () => {
    const installOriginal = (): (() => void) => {
      add(stage.emulator.store, "Deployment", "rollout-operator", { spec: { replicas: 1 } });
      return () => drop(stage.emulator.store, "Deployment", "rollout-operator");
    };
    const forbid = (resource: string): (() => void) =>
      stage.emulator.faults.inject({ verb: "get", resource, effect: { kind: "forbidden" } });
    const FOUND = /^error {2}deployment\/rollout-operator: rollout-operator serves namespace default: .*\(original\)$/m;
    const ROWS: readonly (readonly [name: string, line: string, change: () => () => void, finding: RegExp])[] = [
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
        t.after(installOriginal());
        t.after(change());
        assert.match((await run(line)).out, finding);
      });
    it("leaves it to the finding of a reconciler that is stopped", async (t) => {
      const { run } = await openTerminal(t, stage, { ticks: false });
      t.after(installOriginal());
      writeLease(stage, { holder: "", tickedMs: 3_600_000, renewedMs: 3_600_000 });
      t.after(() => writeLease(stage, {}));
      const { out } = await run("doctor");
      assert.match(out, /\(no-tick\)/);
      assert.doesNotMatch(out, /\(original\)/);
    });
  });

  // Scripts read these: fields are added, none is renamed or removed.
  const SHAPES = [
    { line: "status", fields: "kind namespace group progress message holds" },
    { line: "status ingester", fields: "kind namespace group progress message holds" },
    { line: "explain ingester", fields: "kind name answers" },
    { line: "plan ingester", fields: "group end estimatedEnd steps lastWait holds remaining" },
    { line: "pause ingester --dry-run", fields: "group dryRun changes" },
  ];
  for (const { line, fields } of SHAPES)
    it(`${line} -o json has ${fields}`, async (t) => {
      const { run, json } = await openTerminal(t, stage);
      const value = await json<object | readonly object[]>(line);
      const [first = value] = [value].flat();
      assert.equal(Object.keys(first).join(" "), fields);
      assert.deepEqual(parse((await run(`${line} -o yaml`)).out), value);
    });
});

it("drain-order lets no wave begin while a budget refuses a pod of it, though it allows another", async (t) => {
  const budget = { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)" };
  const { stage, run, json } = await openGuarded(t, { budget });
  assert.equal((await run("drain-order node-1")).code, 0);
  stage.emulator.store.remove("pods", "default", "ingester-zone-b-0");
  const { code, out } = await run("drain-order node-1");
  const [[node] = []] = await json<{ pods: { refusal?: string }[] }[][]>("drain-order node-1");
  assert.deepEqual(new Set(node?.pods.map(({ refusal }) => refusal === undefined)), new Set([true, false]), out);
  assert.equal(code, 1, out);
});

it("drain-order needs no definition of RolloutGroups, and explain says that it is missing", async (t) => {
  const { run } = await openGuarded(t);
  const { code, out, err } = await run("drain-order node-1");
  assert.deepEqual([code, err], [0, ""]);
  assert.match(out, /^1 +node-1 +zone-1 +[1-9] +yes$/m);
  const explained = await run("explain group/ingester");
  assert.match(explained.err, /CRD RolloutGroup not installed: .*\n +kubectl apply -k infra\/manifests\/crds/);
});

it("drain-order says no if a pod of a later wave is refused for a reason that waiting does not end", async (t) => {
  const { stage, run } = await openGuarded(t);
  amend(stage.emulator.store, "StatefulSet", "ingester-zone-c", { labels: { "rollout-group": "ingestr" } });
  const { code, out } = await run("drain-order node-1 node-2 node-3");
  assert.match(out, /^1 +node-1 +zone-1 +\d+ +yes$/m);
  assert.match(out, /^2 +node-2 +zone-2 +\d+ +after wave 1$/m);
  assert.match(out, /^\d +node-3 +zone-3 +\d+ +refused: unable to find StatefulSet ingester-zone-c by name/m);
  assert.equal(code, 1);
});
