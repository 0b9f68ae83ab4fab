/** Gates that have failed or are invalid, in the eyes of who waits: the command line, and kubectl wait. */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { ANNOTATIONS } from "../../../reconciler/model/annotations.ts";
import { define } from "../../demo/definitions.ts";
import { GATES, setGateStage, writeGate, type GateStage } from "../../reconciler/gates/act/stage.ts";
import { groupOf, startSession } from "../../reconciler/group-status/act/status-stage.ts";
import { deploy } from "../../reconciler/stage.ts";
import { openTerminal, type Terminal } from "../stage.ts";

interface Scene extends Terminal {
  readonly gates: GateStage;
  /** So many ticks, a second apart. */
  readonly tickFor: (seconds: number) => Promise<void>;
}

/** The first zone has the new template; the next one waits for the gate. */
async function setScene(t: TestContext, check: object): Promise<Scene> {
  const gates = await setGateStage();
  const { stage } = gates;
  await define(stage.emulator.store, ["rolloutgroups"]);
  await stage.time.advance(1000);
  const session = startSession(stage);
  t.after(async () => {
    await session.end();
    await gates.close();
  });
  const checking = gates.checking(session.cluster);
  const tickFor = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      await session.tick({ ...checking, emitEvents: (drafts) => void gates.events.push(...drafts) });
      await stage.time.advance(1000);
    }
  };
  gates.prometheus.answer = () => 1;
  writeGate(gates, {}, check);
  await tickFor(2);
  deploy(stage, "x:2");
  await tickFor(30);
  return { ...(await openTerminal(t, stage)), gates, tickFor };
}

/** As `kubectl wait --for=condition=…` judges: conditions of an earlier generation are ignored. */
function holdsFor({ gates: { stage } }: Scene, wanted: string): boolean {
  const { metadata, status } = groupOf(stage) ?? assert.fail();
  const found = status?.conditions.find(({ type }) => type === wanted);
  return found?.status === "True" && found.observedGeneration === metadata.generation;
}

it("a gate that has failed stalls its group: status ends with 1, and kubectl wait for Stalled", async (t) => {
  const scene = await setScene(t, { failureThreshold: 2 });
  const { code, out } = await scene.run("status ingester --watch --timeout 1m");
  assert.equal(code, 1, out);
  assert.match(out, /^ingester Blocked: .*; ingester-zone-b is stopped by gate gate: check "errors" has failed/);
  const once = await scene.run("status ingester");
  assert.equal(once.code, 1, once.out);
  assert.match(once.out, /^GateFailed /m);
  assert.deepEqual([holdsFor(scene, "Stalled"), holdsFor(scene, "Ready")], [true, false]);
});

it("retry asks a failed gate again, once however often it is pressed, by the command that explain shows", async (t) => {
  const scene = await setScene(t, { failureThreshold: 2 });
  const { gates, run, tickFor } = scene;
  const [, command = ""] = /zonewise (-n default retry gate)$/m.exec((await run("explain ingester")).out) ?? [];
  const before = gates.prometheus.seen.length;
  assert.equal((await run(`${command} --dry-run`)).out, "Retry of default/gate requested (dry run)\n");
  await tickFor(3);
  assert.equal(gates.prometheus.seen.length, before, "a dry run stores nothing");
  const first = await run(command);
  assert.deepEqual([first.code, first.out], [0, "Retry of default/gate requested\n"]);
  assert.match((await run(command)).out, /^default\/gate is already retried with the next tick$/m);
  await tickFor(5);
  assert.equal(gates.prometheus.seen.length, before + 2, "two failures in a row are the end again");
  gates.prometheus.answer = () => 0;
  assert.equal((await run("retry gate/gate")).out, "Retry of default/gate requested\n");
  await tickFor(20);
  assert.equal((await run("retry gate")).out, "default/gate has not failed: there is nothing to retry\n");
  const unknown = await run("retry gat");
  assert.equal(unknown.code, 4);
  assert.match(unknown.err, /no gate "gat" in namespace default\n +did you mean gate\?/);
});

it("retry for all namespaces writes to no gate if two have the name, and names the namespace of the only one", async (t) => {
  const { gates, run, json } = await setScene(t, { failureThreshold: 2 });
  const { store } = gates.stage.emulator;
  const gate = store.get(GATES, "default", "gate") ?? assert.fail();
  const asked = await json<{ namespace: string; name: string; changes: string[] }>("retry gate -A --dry-run");
  assert.deepEqual(
    [asked.namespace, asked.name, asked.changes],
    ["default", "gate", ["Retry of default/gate requested"]],
  );
  store.create(GATES, { ...gate, metadata: { name: "gate", namespace: "other" } });
  const { code, err } = await run("retry gate -A");
  assert.equal(code, 4);
  assert.match(err, /gate gate is in several namespaces: default, other\n +choose one with -n/);
  assert.deepEqual(store.get(GATES, "default", "gate"), gate);
});

it("bypass lets a group go on past a gate that has failed, is shown wherever its group is, and ends", async (t) => {
  const scene = await setScene(t, { failureThreshold: 2 });
  const { gates, run, json, tickFor } = scene;
  const setOf = (zone: string) =>
    gates.stage.emulator.store.get("statefulsets.apps", "default", `ingester-zone-${zone}`) ?? assert.fail();
  const writtenOf = (zone: string) => setOf(zone).metadata.annotations?.[ANNOTATIONS.bypassGatesUntil];
  for (const [line, text] of [
    ["bypass ingester", /bypass needs --for or --end; nothing was changed/],
    ["bypass ingester --for 30m", /bypass needs --reason; nothing was changed/],
    ["bypass ingester --for 25h --reason x", /invalid --for "25h": use 1s to 24h/],
    ["bypass ingester --for 1d --reason x", /invalid --for "1d"/],
    ["bypass ingester --end --for 1m", /--end takes no --for and no --reason/],
  ] as const) {
    const { code, err } = await run(line);
    assert.deepEqual([code, writtenOf("b")], [2, undefined], line);
    assert.match(err, text);
  }
  assert.match((await run("bypass ingester --for 30m --reason known --dry-run")).out, /for 30m \(dry run\)$/m);
  assert.equal(writtenOf("b"), undefined);
  const { out } = await run("bypass ingester --for 30m --reason known");
  const until = writtenOf("b") ?? assert.fail();
  assert.ok(out.includes(`ingester-zone-b may begin without its gates until ${until}, for 30m\n`), out);
  const shown = `until ${until} (known)`;
  assert.ok((await run("explain ingester")).out.includes(`ingester-zone-b has a bypass ${shown}`));
  assert.match((await run("plan ingester")).out, /ReplacePods +ingester-zone-b/);
  assert.ok((await run("plan ingester")).out.includes(`ingester-zone-b begins without its gates ${shown}`));
  await tickFor(2);
  assert.ok((await run("status ingester")).out.includes(`gates bypassed ${shown}`));
  const { status } = await json<{ status: { zones: { gatesBypassedUntil?: string }[] } }>("status ingester");
  assert.equal(status.zones[1]?.gatesBypassedUntil, until);
  await tickFor(60);
  assert.equal((await run("status ingester")).code, 0);
  assert.match((await run("bypass ingester --end")).out, /^ingester-zone-b waits for its gates again$/m);
  assert.match((await run("bypass ingester --end")).out, /^ingester-zone-b had no bypass$/m);
  assert.deepEqual(
    [writtenOf("b"), setOf("b").metadata.annotations?.[ANNOTATIONS.bypassGatesReason]],
    [undefined, undefined],
  );
  await tickFor(2);
  assert.doesNotMatch((await run("status ingester")).out, /without its gates/);
});
