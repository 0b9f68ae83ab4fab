import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { add, amend } from "../../builders/objects.ts";
import { deploy, type Stage } from "../../reconciler/stage.ts";
import { setStatusStage, startSession, type Session } from "../../reconciler/group-status/act/status-stage.ts";
import { budgetDefinition, writeBudget } from "../../reconciler/budget-stage.ts";
import { guardEvictions } from "../guard-stage.ts";
import { openTerminal } from "../stage.ts";

describe("zonewise explain", { timeout: 300_000 }, () => {
  let stage: Stage;
  let session: Session;
  let guard: Awaited<ReturnType<typeof guardEvictions>>;
  before(async () => {
    stage = await setStatusStage();
    stage.emulator.store.create("customresourcedefinitions.apiextensions.k8s.io", budgetDefinition());
    await stage.time.advance(1000);
    deploy(stage, "app:1", { podLabels: { "rollout-group": "ingester" } });
    await stage.time.advance(2000);
    writeBudget(stage);
    guard = await guardEvictions(stage);
    const annotations = { "grafana.com/rollout-paused": "true" };
    amend(stage.emulator.store, "StatefulSet", "ingester-zone-a", { annotations });
    deploy(stage, "app:2", { zones: ["a"], podLabels: { "rollout-group": "ingester" } });
    await stage.time.advance(1000);
    session = startSession(stage);
    await session.tick();
    await stage.time.advance(90_000);
  });
  after(async () => {
    await session.end();
    guard.close();
    await stage.close();
  });

  const CASES = [
    { object: "ingester", text: /^group\/ingester\n {2}roll out: Paused {2}ZonePaused\n/ },
    { object: "group/ingester", text: /since +1m\d+s ago \(\d{4}-/ },
    { object: "sts/ingester-zone-a", text: /rule +no pod of a paused zone is replaced/ },
    {
      object: "ingester-zone-a-0",
      text: /^pod\/ingester-zone-a-0\n {2}Can be evicted: .*\n {2}roll out: Paused {2}ZonePaused/,
    },
    {
      object: "ingester-zone-a",
      text: /fix\n +kubectl -n default annotate --overwrite statefulset ingester-zone-a grafana.com\/rollout-paused-/,
    },
  ];
  for (const { object, text } of CASES)
    it(`${object}: no`, async (t) => {
      const { code, out } = await (await openTerminal(t, stage)).run(`explain ${object}`);
      assert.match(out, text);
      assert.equal(code, 1);
    });

  it("says yes with 0, and shows the same as JSON", async (t) => {
    const { run, json } = await openTerminal(t, stage);
    assert.equal((await run("explain pod/ingester-zone-b-1")).code, 0);
    const [first] = await json<{ answers: { question: string; allowed: boolean }[] }[]>(
      "explain pod/ingester-zone-b-1",
    );
    assert.deepEqual(first?.answers[0]?.allowed, true);
  });

  it("says of a node whether it can be drained, and lists its pods", async (t) => {
    const { code, out } = await (await openTerminal(t, stage)).run("explain node/node-1");
    assert.deepEqual([code, out.split(/-zone-. ?/)[0]], [0, "node/node-1\n  Can be drained:  ingester"]);
  });

  it("reports that a node's pods cannot be judged, also while it reads the node's update", async (t) => {
    const { run } = await openTerminal(t, stage);
    t.after(
      stage.emulator.faults.inject({ verb: "get", resource: "statefulsets.apps", effect: { kind: "forbidden" } }),
    );
    const { code, err } = await run("explain node/node-1");
    assert.equal(code, 4);
    assert.match(err, /^error: get statefulsets .*: it is forbidden/);
  });

  it("says of a node without such pods that there are none", async (t) => {
    add(stage.emulator.store, "Node", "empty");
    const { code, out } = await (await openTerminal(t, stage)).run("explain node/empty");
    assert.deepEqual([code, out], [0, "node/empty\n  Can be drained:  no pod of a StatefulSet runs on it\n"]);
  });

  it("answers for a name alone without the right to get nodes, as one bound in a namespace has none", async (t) => {
    const { run } = await openTerminal(t, stage);
    t.after(stage.emulator.faults.inject({ verb: "get", resource: "nodes", effect: { kind: "forbidden" } }));
    const { code, err } = await run("explain ingester-zone-x");
    assert.match(err, /nothing named "ingester-zone-x" found in namespace default; nodes may not be read/);
    assert.match(err, /did you mean .*ingester-zone-a/);
    assert.equal(code, 4);
    assert.match((await run("explain node/node-1")).err, /^error: get nodes node-1: it is forbidden/);
  });

  it("suggests what exists in place of what does not", async (t) => {
    const { run } = await openTerminal(t, stage);
    const { code, err } = await run("explain ingester-zone-x");
    assert.equal(code, 4);
    assert.match(err, /did you mean .*ingester-zone-a/);
    assert.match(
      (await run("explain pod/ingester-zone-a-9")).err,
      /no pod .* in namespace default\n +did you mean ingester-zone-a-0, /,
    );
    assert.match((await run("explain node/node-9")).err, /no node .*\n +did you mean node-1, /);
    assert.match(
      (await run("explain phased/x")).err,
      /no phasedrollout "x" found in namespace default\n$/,
      "the cluster has no definition of them",
    );
    assert.match((await run("explain deployment/x")).err, /use one of group, statefulset, pod, node/);
    for (const wrong of ["pod/", "pod/a/b", "/x"]) assert.equal((await run(`explain ${wrong}`)).code, 2, wrong);
    assert.match((await run("explain ingester -A")).err, /explain needs one namespace/);
  });
});
