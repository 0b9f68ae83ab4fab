import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { amend } from "../../builders/objects.ts";
import { deploy, type Stage } from "../../reconciler/stage.ts";
import { setStatusStage, startSession, type Session } from "../../reconciler/group-status/act/status-stage.ts";
import { openTerminal } from "../stage.ts";

/** Ticks until the group has settled, a second apart. */
async function rollOut(stage: Stage, session: Session, most = 60): Promise<void> {
  for (let i = 0; i < most; i++) {
    const { outcomes } = await session.tick();
    await stage.time.advance(1000);
    if (outcomes.every(({ state }) => state === "settled")) return;
  }
  assert.fail("it has not settled");
}

describe("zonewise status", { timeout: 300_000 }, () => {
  let stage: Stage;
  let session: Session;
  before(async () => {
    stage = await setStatusStage();
    deploy(stage, "app:1");
    deploy(stage, "app:1", { group: "querier", zones: ["a", "b"] });
    await stage.time.advance(2000);
    session = startSession(stage);
    await session.tick();
    await stage.time.advance(2000);
    await session.tick();
  });
  after(async () => {
    await session.end();
    await stage.close();
  });

  const EMPTY = [
    { flags: "", code: 0 },
    { flags: " --watch=false --timeout 1m", code: 0 },
    { flags: " --watch", code: 4 },
    { flags: " --timeout 1m", code: 4 },
  ];
  for (const { flags, code } of EMPTY)
    it(`says that a namespace has no groups, which one it was, and ends with ${code}:${flags || " once"}`, async (t) => {
      const { run, json } = await openTerminal(t, stage);
      const err = "no rollout groups in namespace kube-system: no StatefulSet has the label rollout-group\n";
      assert.deepEqual(await run(`status -n kube-system${flags}`), { code, out: "", err });
      assert.deepEqual(await json(`status -n kube-system${flags}`), []);
    });

  for (const line of [
    "status",
    "status --watch",
    "status ingester --timeout 1h",
    "explain ingester",
    "history ingester",
  ])
    it(`${line}: names a namespace that does not exist`, async (t) => {
      const { run } = await openTerminal(t, stage);
      const err = 'error: no namespace "defualt"\n       did you mean default?\n';
      assert.deepEqual(await run(`${line} -n defualt`), { code: 4, out: "", err });
    });

  it("takes a namespace for one that exists if it may not be read", async (t) => {
    const { run } = await openTerminal(t, stage);
    const remove = stage.emulator.faults.inject({ verb: "get", resource: "namespaces", effect: { kind: "forbidden" } });
    assert.match((await run("status -n kube-system")).err, /^no rollout groups in namespace kube-system: /);
    remove();
  });

  it("shows a line a group and exits with 0 when all are done", async (t) => {
    const { run } = await openTerminal(t, stage);
    const { code, out } = await run("status");
    assert.match(out, /^GROUP +PHASE +ZONES +UPDATED/);
    assert.match(out, /^ingester +Ready +3\/3 +9\/9 +9\/9/m);
    assert.match(out, /^querier +Ready +2\/2 +6\/6 +6\/6/m);
    assert.equal(code, 0);
  });

  it("shows one group with its zones, as JSON and as YAML too", async (t) => {
    const { run, json } = await openTerminal(t, stage);
    assert.match((await run("status ingester")).out, /ingester-zone-a +3\/3 +3\/3/);
    const value = await json<{ progress: string; status: { phase: string } }>("status ingester");
    assert.deepEqual([value.progress, value.status.phase], ["done", "Ready"]);
    assert.match((await run("status ingester -o yaml")).out, /^progress: done$/m);
  });

  it("prints all columns with -o wide on a narrow terminal", async (t) => {
    const { run } = await openTerminal(t, stage, { isTty: true, size: { columns: 40, rows: 24 } });
    const headings = async (flags: string): Promise<string> =>
      (await run(`status --no-color --no-watch ${flags}`)).out.split("\n")[0] ?? "";
    assert.equal(await headings(""), "GROUP     PHASE  UPDATED  PODS-READY");
    assert.match(await headings("-o wide"), /ESTIMATED-END$/);
    assert.match((await run("status --no-color -o wide")).out, /^GROUP .* ESTIMATED-END$/m);
  });

  it("colours only a terminal, and not with NO_COLOR or --no-color", async (t) => {
    const isColoured = async (line: string, isTty: boolean, env = {}): Promise<boolean> =>
      (await (await openTerminal(t, stage, { isTty, env })).run(line)).out.includes("\u001B[32m");
    assert.equal(await isColoured("status --watch=false", true), true);
    assert.equal(await isColoured("status --watch=false", false), false);
    assert.equal(await isColoured("status --watch=false", true, { NO_COLOR: "1" }), false);
    assert.equal(await isColoured("status --watch=false --no-color", true), false);
  });

  it("suggests the name of a group that does not exist", async (t) => {
    const { run } = await openTerminal(t, stage);
    const { code, err } = await run("status ingestr");
    assert.equal(code, 4);
    assert.match(err, /no rollout group "ingestr" in namespace default\n +did you mean ingester\?/);
    assert.match((await run("status ingester -n elsewhere")).err, /no namespace "elsewhere"/);
  });

  it("never takes a ready from before an apply for one after it", async (t) => {
    const { run } = await openTerminal(t, stage);
    deploy(stage, "app:2", { group: "querier", zones: ["a", "b"] });
    await stage.time.advance(1000);
    const { code, out } = await run("status querier");
    assert.equal(code, 3);
    assert.match(out, /Unseen/);
    assert.match(out, /the reconciler has not seen the latest spec yet/);
    await rollOut(stage, session);
    assert.equal((await run("status querier")).code, 0);
  });

  it("--timeout waits, without a terminal too", async (t) => {
    const lines: string[] = [];
    const { run } = await openTerminal(t, stage, { onWrite: (text) => void lines.push(text) });
    deploy(stage, "app:3", { group: "querier", zones: ["a", "b"] });
    await stage.time.advance(1000);
    let isOver = false;
    const waiting = run("status querier --timeout 1h").finally(() => void (isOver = true));
    while (lines.length === 0 && !isOver) await new Promise((resolve) => setImmediate(resolve));
    for (let i = 0; !isOver && i < 200; i++) {
      await session.tick();
      await stage.time.advance(1000);
    }
    assert.deepEqual(await waiting, { code: 0, out: lines.join(""), err: "" });
    assert.match(lines.at(-1) ?? "", /^querier Ready: /m);
  });

  it("waits until a rollout is done, with a line a change, whatever happens to the connection", async (t) => {
    const lines: string[] = [];
    const { run } = await openTerminal(t, stage, { onWrite: (text) => void lines.push(text) });
    deploy(stage, "app:3");
    await stage.time.advance(1000);
    let isOver = false;
    const waiting = run("status ingester --watch").finally(() => void (isOver = true));
    while (lines.length === 0) await new Promise((resolve) => setImmediate(resolve));
    stage.emulator.faults.inject({
      verb: "list",
      resource: "rolloutgroups.zonewise.dev",
      effect: { kind: "error" },
      // Each tick of the reconciler lists them, too.
      times: 6,
    });
    for (let i = 0; !isOver && i < 200; i++) {
      await session.tick();
      await stage.time.advance(1000);
    }
    const { code, err } = await waiting;
    assert.equal(code, 0);
    assert.match(err, /connection lost, trying again: /);
    assert.match(lines[0] ?? "", /^ingester (?:Unseen|RollingOut): /);
    assert.match(lines.at(-1) ?? "", /^ingester Ready: 9\/9 updated, 9\/9 ready; all zones are updated and ready$/m);
  });

  it("exits with 3 when it was not done in time, and with 1 when it is blocked", async (t) => {
    const { run } = await openTerminal(t, stage);
    amend(stage.emulator.store, "StatefulSet", "querier-zone-a", {
      spec: { updateStrategy: { type: "RollingUpdate" } },
    });
    await stage.time.advance(1000);
    const timedOut = await run("status querier --timeout=0s");
    assert.deepEqual([timedOut.code, timedOut.err], [3, "not done within 0s\n"]);
    await session.tick();
    const blocked = await run("status querier --watch");
    assert.equal(blocked.code, 1);
    assert.match(blocked.out, /Blocked/);
  });
});

describe("a Ctrl-C", { timeout: 300_000 }, () => {
  let stage: Stage;
  before(async () => {
    stage = await setStatusStage();
    deploy(stage, "app:1");
    await stage.time.advance(2000);
  });
  after(() => stage.close());

  for (const line of ["status --watch", "plan ingester", "pause ingester"])
    it(`ends ${line} at once, with 130, whatever the API server does`, async (t) => {
      const stop = new AbortController();
      const remove = stage.emulator.faults.inject({ verb: "list", effect: { kind: "latency", ms: 600_000 } });
      const struck = stage.emulator.faults.struck();
      const ending = (await openTerminal(t, stage, { signal: stop.signal })).run(`${line} --request-timeout 1h`);
      while (stage.emulator.faults.struck() === struck) await new Promise((resolve) => setImmediate(resolve));
      stop.abort();
      assert.equal((await ending).code, 130);
      remove();
    });

  it("ends a wait with 130, not as one that was not done in time", async (t) => {
    const stop = new AbortController();
    const { run } = await openTerminal(t, stage, { signal: stop.signal, onWrite: () => stop.abort() });
    assert.deepEqual((await run("status ingester --watch")).code, 130);
  });

  it("a timeout is not made longer by an API server that does not answer", async (t) => {
    const remove = stage.emulator.faults.inject({ verb: "list", effect: { kind: "latency", ms: 600_000 } });
    const struck = stage.emulator.faults.struck();
    const ending = (await openTerminal(t, stage)).run("status --timeout 5s --request-timeout 1h");
    while (stage.emulator.faults.struck() === struck) await new Promise((resolve) => setImmediate(resolve));
    await stage.time.advance(5000);
    assert.deepEqual(await ending, { code: 3, out: "", err: "not done within 5s\n" });
    remove();
  });
});

describe("errors of zonewise", { timeout: 300_000 }, () => {
  let stage: Stage;
  before(async () => void (stage = await setStatusStage({ withDefinition: false })));
  after(() => stage.close());

  const CASES = [
    { line: "status --context nowhere", code: 2, err: /there is no context "nowhere", only zonewise/ },
    { line: "status -o xml", code: 2, err: /Allowed choices are table, wide, json, yaml/ },
    { line: "statsu", code: 2, err: /unknown command 'statsu'\n\(Did you mean status\?\)/ },
    { line: "status --timeout soon", code: 2, err: /invalid --timeout "soon": use e\.g\. 30m/ },
    { line: "status --kubeconfig /nowhere", code: 2, err: /no usable Kubernetes configuration in \/nowhere/ },
    { line: "status --as-group ops", code: 2, err: /--as-group needs --as/ },
    {
      line: "status",
      code: 4,
      err: /CRD RolloutGroup not installed: .*\n +kubectl apply -k infra\/manifests\/crds/,
    },
  ];
  for (const { line, code, err } of CASES)
    it(`${line}: ${err.source.replaceAll("\\", "")}`, async (t) => {
      const ended = await (await openTerminal(t, stage)).run(line);
      assert.equal(ended.code, code, ended.err);
      assert.match(ended.err, err);
    });
});
