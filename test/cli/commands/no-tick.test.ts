/** What every command says first, and how it ends, while the reconciler does not tick. */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { add, amend, drop, type Kind, statefulSet, type Traits } from "../../builders/objects.ts";
import { deploy, type Stage } from "../../reconciler/stage.ts";
import { setStatusStage, startSession, type Session } from "../../reconciler/group-status/act/status-stage.ts";
import { openTerminal, writeLease } from "../stage.ts";

const NAME = "zonewise-reconciler";
const LEASES = "leases.coordination.k8s.io";

describe("without a tick", { timeout: 300_000 }, () => {
  let stage: Stage;
  let session: Session;
  before(async () => {
    stage = await setStatusStage();
    deploy(stage, "app:1");
    await stage.time.advance(2000);
    session = startSession(stage);
    await session.tick();
    await stage.time.advance(5000);
  });
  after(async () => {
    await session.end();
    await stage.close();
  });
  const made: (() => void)[] = [];
  const create = (kind: Kind, name: string, traits: Traits): void => {
    add(stage.emulator.store, kind, name, { ...traits });
    made.push(() => drop(stage.emulator.store, kind, name, traits.namespace));
  };
  afterEach(() => {
    for (const undo of made.splice(0)) undo();
    if (stage.emulator.store.get(LEASES, "default", NAME)) stage.emulator.store.remove(LEASES, "default", NAME);
  });
  const createZone = (name: string, group: string): void => {
    const { spec } = statefulSet(name, 0) as { spec?: object };
    create("StatefulSet", name, { namespace: group, labels: { "rollout-group": group }, ...(spec && { spec }) });
  };
  /** As a run leaves it 5 minutes after it was suspended. */
  const suspend = (): void => {
    const status = { lastScheduleTime: new Date(stage.clock.now()).toISOString() };
    create("CronJob", NAME, { spec: { suspend: true }, status });
    writeLease(stage, { holder: "", tickedMs: 300_000, renewedMs: 300_000 });
  };
  const FIRST =
    /^warning {2}the reconciler has not run since \S+ \(5m ago\): CronJob default\/zonewise-reconciler is suspended\n/;

  it("status of a ready group is 1, or 4 where it was ready, and not green", async (t) => {
    const { run } = await openTerminal(t, stage, { ticks: false });
    writeLease(stage, {});
    assert.equal((await run("status")).code, 0);
    suspend();
    const { code, out } = await run("status");
    assert.match(out, FIRST);
    assert.match(out, /ingester +Ready \(old\)/);
    assert.equal(code, 4);
    assert.equal((await run("status ingester")).code, 4);
  });

  const LINES: readonly (readonly [line: string, code: number])[] = [
    ["explain ingester", 4],
    ["explain ingester-zone-a", 4],
    ["plan ingester", 4],
    ["drain-order node-1", 1],
    ["pause ingester --dry-run", 0],
    ["resume ingester --dry-run", 0],
    ["restart ingester --dry-run", 0],
    ["history ingester", 0],
    ["undo ingester --dry-run", 0],
  ];
  for (const [line, expected] of LINES)
    it(`${line} says it first, and ends with ${expected}`, async (t) => {
      suspend();
      const { code, out, err } = await (await openTerminal(t, stage, { ticks: false })).run(line);
      assert.match(out, FIRST, err);
      assert.match(
        out,
        /fix:\n +kubectl -n default patch cronjob zonewise-reconciler -p '\{"spec":\{"suspend":false\}\}'\n/,
      );
      assert.equal(code, expected);
    });

  it("of several namespaces, each is judged by its own reconciler", async (t) => {
    suspend();
    createZone("other-zone-a", "other");
    writeLease(stage, { namespace: "other" });
    t.after(() => stage.emulator.store.remove(LEASES, "other", NAME));
    const { json } = await openTerminal(t, stage, { ticks: false });
    const found = await json<{ group: string; message: string; reconciler?: { state: string }[] }[]>("status -A");
    assert.deepEqual(
      found.map(({ group, message, reconciler = [] }) => [
        group,
        message.startsWith("before the reconciler stopped"),
        reconciler.map(({ state }) => state),
      ]),
      [
        ["ingester", true, ["stopped"]],
        ["other", false, []],
      ],
    );
  });

  it("of all namespaces, an installation without a group is judged, too", async (t) => {
    create("CronJob", NAME, { namespace: "idle", spec: { suspend: true } });
    const { run } = await openTerminal(t, stage, { ticks: false });
    assert.match((await run("status -A")).out, /CronJob idle\/zonewise-reconciler was created/);
  });

  it("of all namespaces, one with zones alone is judged beside one with RolloutGroups", async (t) => {
    createZone("lone-zone-a", "lone");
    assert.equal(stage.emulator.store.list("rolloutgroups.zonewise.dev").length, 1);
    const { run } = await openTerminal(t, stage, { ticks: false });
    assert.match((await run("status -A")).out, /no reconciler serves namespace lone/);
  });

  it("drain-order judges the namespaces of the pods on the nodes, whatever the kubeconfig says", async (t) => {
    suspend();
    const { run } = await openTerminal(t, stage, { ticks: false });
    const drained = await run("drain-order node-1 -n elsewhere");
    assert.match(drained.out, FIRST);
    assert.doesNotMatch(drained.out, /elsewhere/);
  });

  it("JSON carries it in each object", async (t) => {
    suspend();
    const { json } = await openTerminal(t, stage, { ticks: false });
    type Carries = { reconciler?: { state: string; reason: string; since: string }[] };
    for (const line of ["status", "explain ingester", "plan ingester", "pause ingester --dry-run"]) {
      const [first] = [await json<Carries | Carries[]>(line)].flat();
      assert.deepEqual([first?.reconciler?.[0]?.state, first?.reconciler?.[0]?.reason], ["stopped", "Suspended"], line);
    }
  });

  it("what the next tick would do is no, and no time is promised", async (t) => {
    const { run, json } = await openTerminal(t, stage, { ticks: false });
    suspend();
    deploy(stage, "app:2");
    await stage.time.advance(1000);
    const { code, out } = await run("explain ingester");
    assert.match(
      out,
      /roll out: Blocked {2}ReconcilerStopped\n {4}why +the reconciler has not run since .*; it would: updating/,
    );
    assert.equal(code, 4);
    assert.match((await run("explain pod/ingester-zone-a-0")).out, /roll out: Blocked {2}ReconcilerStopped/);
    const planned = await run("plan ingester");
    assert.equal(planned.code, 4);
    assert.match(planned.out, /^Then done, once the reconciler ticks$/m);
    assert.doesNotMatch(planned.out, /in about/);
    const value = await json<{ estimatedEnd?: string; steps: { at?: string }[] }>("plan ingester");
    assert.deepEqual([value.estimatedEnd, value.steps[0]?.at], [undefined, undefined]);
    writeLease(stage, {});
    assert.match(
      (await run("explain ingester")).out,
      /roll out: Blocked {2}ReconcilerStopped\n {4}why +the reconciler last ran \ds ago/,
    );
    amend(stage.emulator.store, "CronJob", NAME, { spec: { suspend: false } });
    assert.match((await run("explain ingester")).out, /Goes on by itself:/);
    assert.notEqual((await json<{ estimatedEnd?: string }>("plan ingester")).estimatedEnd, undefined);
  });

  it("a watch goes on until its timeout, and ends with 4", async (t) => {
    suspend();
    const { run } = await openTerminal(t, stage, { ticks: false });
    const { code, out, err } = await run("status -w --timeout=0s");
    assert.match(
      out,
      /^warning: the reconciler has not run since \S+: CronJob default\/zonewise-reconciler is suspended\n/,
    );
    assert.match(err, /not done within 0s/);
    assert.equal(code, 4);
  });

  for (const [line] of [...LINES, ["doctor"], ["status --timeout=0s"]] as const)
    it(`${line} breaks its sentences between words at 60 columns, and no command`, async (t) => {
      suspend();
      const { run } = await openTerminal(t, stage, { ticks: false, isTty: true, size: { columns: 60, rows: 60 } });
      const lines = stripVTControlCharacters((await run(line)).out).split("\n");
      assert.ok(lines.some((text) => /kubectl .*'\{"spec":\{"suspend":false\}\}'$/.test(text)));
      const long = lines.filter((text) => text.length > 60 && !/^ +kubectl|^(warning {2})?\S+$/.test(text));
      assert.deepEqual(long, []);
    });

  it("rights that are lacking are said: nothing is guessed", async (t) => {
    const { run } = await openTerminal(t, stage, { ticks: false });
    suspend();
    const deny = (resource: string) =>
      (["get", "list"] as const).map((verb) =>
        stage.emulator.faults.inject({ verb, resource, effect: { kind: "forbidden" } }),
      );
    const heal = [...deny("jobs.batch"), ...deny("cronjobs.batch")];
    assert.match(
      (await run("explain ingester")).out,
      /^warning {2}the reconciler has not run since .*: the cause is unknown: CronJob default\/zonewise-reconciler may not be read; the Jobs in default may not be read\n/,
    );
    heal.push(...deny(LEASES));
    const { code, out } = await run("status");
    assert.match(
      out,
      /^warning {2}it is unknown whether the reconciler runs: Lease default\/zonewise-reconciler may not be read; Lease zonewise\/zonewise-reconciler may not be read\n/,
    );
    assert.equal(code, 3);
    for (const one of heal) one();
  });

  it("one that has served the namespace is not called missing: it may be where it was not looked for", async (t) => {
    const { out } = await (await openTerminal(t, stage, { ticks: false })).run("status");
    assert.match(
      out,
      /^warning {2}it is unknown whether the reconciler runs: there is no Lease zonewise-reconciler in default or zonewise, but a reconciler has written the status of RolloutGroup default\/ingester\n/,
    );
  });

  for (const kind of ["forbidden", "error"] as const)
    it(`one whose Lease cannot be read (${kind}) is not called missing`, async (t) => {
      const { run } = await openTerminal(t, stage, { ticks: false });
      writeLease(stage, { name: NAME, namespace: "zonewise" });
      t.after(() => stage.emulator.store.remove(LEASES, "zonewise", NAME));
      t.after(stage.emulator.faults.inject({ verb: "get", resource: LEASES, namespace: "zonewise", effect: { kind } }));
      const { out } = await run("explain ingester");
      assert.match(
        out,
        /^warning {2}it is unknown whether the reconciler runs: Lease zonewise\/zonewise-reconciler (may not|cannot) be read/,
      );
    });

  it("status asks once whether it ticks", async (t) => {
    const { run } = await openTerminal(t, stage, { ticks: false });
    writeLease(stage, {});
    const { faults } = stage.emulator;
    const before = faults.struck();
    t.after(faults.inject({ verb: "get", resource: LEASES, effect: { kind: "latency", ms: 0 } }));
    await run("status");
    assert.equal(faults.struck() - before, 1);
  });

  it("nothing of an installation is said too", async (t) => {
    const { run } = await openTerminal(t, stage, { ticks: false });
    const { out } = await run("explain node-1 -n empty");
    assert.match(out, /^warning {2}no run of the reconciler is recorded: no reconciler serves namespace empty: /);
  });
});

it("without a kubeconfig, a sentence says so", async (t) => {
  const stage = await setStatusStage();
  t.after(() => stage.close());
  const { run } = await openTerminal(t, stage, { ticks: false, env: { KUBECONFIG: "", HOME: "/nowhere" } });
  assert.deepEqual(await run("status"), {
    code: 2,
    out: "",
    err: "error: there is no kubeconfig, and this process does not run in a pod\n       set KUBECONFIG, or use --kubeconfig and --context\n",
  });
});

it("beside the original, where nothing of Zonewise is installed, commands say who serves the namespace", async (t) => {
  const stage = await setStatusStage();
  t.after(() => stage.close());
  deploy(stage, "app:1");
  add(stage.emulator.store, "Deployment", "rollout-operator", { spec: { replicas: 1 } });
  await stage.time.advance(1000);
  const { run } = await openTerminal(t, stage, { ticks: false });
  for (const line of ["plan ingester", "doctor"]) {
    const { out } = await run(line);
    assert.match(
      out,
      /rollout-operator \(Deployment default\/rollout-operator\) serves namespace default, and Zonewise/,
    );
    assert.match(out, /Zonewise rolls out, scales and records nothing here/);
    assert.doesNotMatch(out, /nothing is rolled out|docs\/start\/install/);
  }
});
