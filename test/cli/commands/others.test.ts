/** evict, drain-order, doctor, events and completions, on the embedded cluster. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { parse } from "yaml";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { define } from "../../demo/definitions.ts";
import type { Draft } from "../../emulator/objects.ts";
import { setBudgetStage, writeBudget } from "../../reconciler/budget-stage.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { guardEvictions } from "../guard-stage.ts";
import { openTerminal } from "../stage.ts";

const BUDGETS = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
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

  it("evict asks, and evicts nothing", async (t) => {
    const { run } = await openTerminal(t, stage);
    const { code, out } = await run("evict --dry-run ingester-zone-a-0");
    assert.deepEqual([code, out], [0, "ingester-zone-a-0 may be evicted now (dry run)\n"]);
    await stage.time.advance(1000);
    assert.equal(
      stage.emulator.store.get("pods", "default", "ingester-zone-a-0")?.metadata.deletionTimestamp,
      undefined,
    );
    const usage = await run("evict ingester-zone-a-0");
    assert.deepEqual(
      [usage.code, usage.err],
      [2, "error: evict only asks: say --dry-run\n       kubectl drain evicts, with respect for budgets\n"],
    );
    assert.match((await run("evict --dry-run ingester-zone-a-9")).err, /no pod "ingester-zone-a-9"/);
    assert.match((await run("evict --dry-run ingester-zone-a-0 -A")).err, /evict needs one namespace/);
  });

  it("evict says no with the words of the API server", async (t) => {
    const { run } = await openTerminal(t, stage);
    const spec = { selector: { matchLabels: { name: "ingester-zone-a" } }, maxUnavailable: 0 };
    const metadata = { name: "core", namespace: "default" };
    stage.emulator.store.create("poddisruptionbudgets.policy", {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata,
      spec,
    });
    await stage.time.advance(1000);
    const { code, out } = await run("evict --dry-run ingester-zone-a-0");
    assert.equal(code, 1, out);
    assert.match(out, /may not be evicted now \(dry run\): .*Cannot evict pod as it would violate/);
    const heal = stage.emulator.faults.inject({ verb: "list", resource: BUDGETS, effect: { kind: "forbidden" } });
    const unread = await run("evict --dry-run ingester-zone-a-0");
    heal();
    assert.deepEqual([unread.code, unread.out.split("\n").length], [1, 2], unread.out);
    assert.match(unread.err, /note: the rule behind it is left out: /);
    assert.match(
      (await run("doctor")).out,
      /warning {2}pdb\/core: it selects pods of ingester-zone-a beside a zone-aware budget/,
    );
    stage.emulator.store.remove("poddisruptionbudgets.policy", "default", "core");
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
    store.remove(BUDGETS, "default", "ingester");
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
    const follower = store.get("statefulsets.apps", "default", "ingester-zone-b") ?? assert.fail();
    const annotations = { ...follower.metadata.annotations, "grafana.com/rollout-downscale-leader": "ingester-zone-a" };
    store.update("statefulsets.apps", { ...follower, metadata: { ...follower.metadata, annotations } });
    const { err } = await run("drain-order node-1 node-2");
    assert.equal(err.split("is assumed").length, 2, err);
    const { metadata } = store.get("statefulsets.apps", "default", "ingester-zone-b") ?? assert.fail();
    store.update("statefulsets.apps", {
      ...follower,
      metadata: { ...metadata, annotations: follower.metadata.annotations ?? {} },
    });
  });

  it("doctor finds nothing wrong, then what was half configured", async (t) => {
    const { run } = await openTerminal(t, stage);
    const well = await run("doctor");
    assert.deepEqual([well.code, well.err], [0, ""]);
    assert.match(
      well.out,
      /^nothing found\nnote {2}namespace\/default: .*\(deletions-not-guarded\)\n +docs\/hardening\.md, .*\n$/,
    );
    writeBudget(stage, { selector: { matchLabels: { nobody: "has" } } }, "second");
    const { code, out } = await run("doctor");
    assert.equal(code, 1);
    assert.match(out, /^error {2}zpdb\/second: it selects no StatefulSet/);
    stage.emulator.store.remove(BUDGETS, "default", "second");
    const sets = stage.emulator.store;
    const zone = sets.get("statefulsets.apps", "default", "ingester-zone-b") as unknown as StatefulSet & Draft;
    const annotations = { "zonewise/delete-by-hand": "true" };
    const template = { ...zone.spec?.template, metadata: { ...zone.spec?.template.metadata, annotations } };
    sets.update("statefulsets.apps", { ...zone, spec: { ...zone.spec, template } });
    assert.match(
      (await run("doctor")).out,
      /^warning {2}statefulset\/ingester-zone-b: .*\(delete-by-hand-in-template\)/m,
    );
    const { metadata: changed } = sets.get("statefulsets.apps", "default", "ingester-zone-b") ?? assert.fail();
    sets.update("statefulsets.apps", { ...zone, metadata: changed });
    assert.match((await run("doctor --pre")).out, /older than Kubernetes 1.30/);
    const original = (replicas: number): Draft => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "rollout-operator", namespace: "default" },
      spec: { replicas },
    });
    const { store } = stage.emulator;
    const { metadata } = store.create("deployments.apps", original(1));
    assert.match((await run("doctor --pre")).out, /deployment\/rollout-operator: the original serves this namespace/);
    store.update("deployments.apps", { ...original(0), metadata });
    assert.doesNotMatch((await run("doctor --pre")).out, /the original serves/);
    store.remove("deployments.apps", "default", "rollout-operator");
  });

  // Scripts read these: fields are added, none is renamed or removed.
  const SHAPES = [
    { line: "status", fields: "kind namespace group progress message blockedBy waitingFor" },
    { line: "status ingester", fields: "kind namespace group progress message blockedBy waitingFor" },
    { line: "explain ingester", fields: "kind name answers" },
    { line: "plan ingester", fields: "group end estimatedEnd steps blocked" },
    { line: "evict --dry-run ingester-zone-a-0", fields: "pod allowed" },
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

  it("events shows what Zonewise has recorded, of one group too", async (t) => {
    const { run } = await openTerminal(t, stage);
    const event = (name: string, object: string, component: string): Draft => ({
      apiVersion: "v1",
      kind: "Event",
      metadata: { name, namespace: "default" },
      involvedObject: { kind: "StatefulSet", namespace: "default", name: object },
      type: "Warning",
      reason: "ZoneNotReady",
      message: "waiting",
      lastTimestamp: "2026-01-01T00:00:00Z",
      reportingComponent: component,
    });
    for (const one of [
      event("1", "ingester-zone-a", "zonewise"),
      event("2", "other", "zonewise"),
      event("3", "ingester-zone-b", "kubelet"),
    ])
      stage.emulator.store.create("events", one);
    const all = await run("events");
    assert.match(all.out, /statefulset\/ingester-zone-a +waiting\n/);
    assert.match(all.out, /statefulset\/other/);
    assert.doesNotMatch(all.out, /zone-b/);
    assert.doesNotMatch((await run("events ingester")).out, /other/);
  });

  it("events shows those of one second in the order in which they were written", async (t) => {
    const { run } = await openTerminal(t, stage);
    const order = ["PodReplaced", "ZoneUpdated", "RolloutCompleted"];
    const create = (reason: string): void =>
      void stage.emulator.store.create("events", {
        apiVersion: "v1",
        kind: "Event",
        // A name that a list has in another order.
        metadata: { name: `${9 - order.indexOf(reason)}-second`, namespace: "default" },
        involvedObject: { kind: "StatefulSet", namespace: "default", name: "ordered" },
        type: "Normal",
        reason,
        message: "in order",
        lastTimestamp: "2026-01-02T00:00:00Z",
        reportingComponent: "zonewise",
      });
    for (const reason of order) create(reason);
    const lines = (await run("events")).out.split("\n").filter((line) => line.includes("in order"));
    assert.deepEqual(
      lines.map((line) => order.find((reason) => line.includes(reason))),
      order,
    );
  });

  const COMPLETIONS = [
    { words: "pl", found: "plan\n" },
    { words: "status i", found: "ingester\n" },
    { words: "evict ingester-zone-a-", found: "ingester-zone-a-0\ningester-zone-a-1\ningester-zone-a-2\n" },
    { words: "drain-order node-1 n", found: "node-2\nnode-3\n" },
    { words: "explain ingester-zone-c", found: "ingester-zone-c\n" },
    { words: "status --tim", found: "--timeout\n" },
    { words: "status --conte", found: "--context\n" },
    { words: "doctor x", found: "" },
    { words: "plan ingester i", found: "" },
    {
      words: "explain po/ingester-zone-a-",
      found: "po/ingester-zone-a-0\npo/ingester-zone-a-1\npo/ingester-zone-a-2\n",
    },
    { words: "explain deployment/", found: "" },
    { words: "-n elsewhere status i", found: "" },
    { words: "--namespace=elsewhere status i", found: "" },
    { words: "-nelsewhere status i", found: "" },
    { words: "-A status i", found: "ingester\n" },
    { words: "-n def", found: "default\n" },
    { words: "--namespace = def", found: "default\n" },
    { words: "status -o j", found: "json\n" },
    { words: "status --output=y", found: "--output=yaml\n" },
    { words: "status --timeout 1", found: "" },
    { words: "pause ingester --zone ingester-zone-b", found: "ingester-zone-b\n" },
  ];
  for (const { words, found } of COMPLETIONS)
    it(`completes ${words}`, async (t) => {
      const { run } = await openTerminal(t, stage);
      assert.equal((await run(`__complete -- ${words}`)).out, found);
    });

  it("completes at once what needs no cluster, and no names where none answers", async (t) => {
    const { run } = await openTerminal(t, stage, { env: { KUBECONFIG: "/nowhere" } });
    assert.equal((await run("__complete -- pl")).out, "plan\n");
    assert.deepEqual(await run("__complete -- plan i"), { code: 0, out: "", err: "" });
  });

  for (const shell of ["bash", "zsh", "fish"])
    it(`prints completions for ${shell}, without a cluster`, async (t) => {
      const { run } = await openTerminal(t, stage, { env: { KUBECONFIG: "/nowhere" } });
      assert.match((await run(`completion ${shell}`)).out, /zonewise __complete -- /);
    });

  it("knows no other shell", async (t) =>
    assert.equal((await (await openTerminal(t, stage)).run("completion tcsh")).code, 2));
});

it("drain-order lets no wave begin while a budget refuses a pod of it, though it allows another", async (t) => {
  const stage = await setBudgetStage();
  t.after(() => stage.close());
  writeBudget(stage, { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)" });
  const guard = await guardEvictions(stage);
  t.after(() => guard.close());
  const { run, json } = await openTerminal(t, stage);
  assert.equal((await run("drain-order node-1")).code, 0);
  stage.emulator.store.remove("pods", "default", "ingester-zone-b-0");
  const { code, out } = await run("drain-order node-1");
  const [[node] = []] = await json<{ pods: { refusal?: string }[] }[][]>("drain-order node-1");
  assert.deepEqual(new Set(node?.pods.map(({ refusal }) => refusal === undefined)), new Set([true, false]), out);
  assert.equal(code, 1, out);
});

it("drain-order needs no definition of RolloutGroups, and explain says that it is missing", async (t) => {
  const stage = await setBudgetStage();
  t.after(() => stage.close());
  writeBudget(stage);
  const guard = await guardEvictions(stage);
  t.after(() => guard.close());
  const { run } = await openTerminal(t, stage);
  const { code, out, err } = await run("drain-order node-1");
  assert.deepEqual([code, err], [0, ""]);
  assert.match(out, /^1 +node-1 +zone-1 +[1-9] +yes$/m);
  const explained = await run("explain group/ingester");
  assert.match(
    explained.err,
    /no definition of RolloutGroups.*\n +install it: kubectl apply -k infra\/manifests\/crds/,
  );
});
