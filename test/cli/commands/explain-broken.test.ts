/** Pods that are at fault: what they block, and cures that touch no other pod. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { amend } from "../../builders.ts";
import { setStatusStage, startSession } from "../../reconciler/group-status/act/status-stage.ts";
import { deploy } from "../../reconciler/stage.ts";
import { createRecorder } from "../../../reconciler/report/act/reporter.ts";
import { openTerminal } from "../stage.ts";

it(
  "explain says what a broken pod blocks, and its first cure touches that pod alone",
  { timeout: 300_000 },
  async (t) => {
    const stage = await setStatusStage();
    const { store } = stage.emulator;
    deploy(stage, "app:1");
    await stage.time.advance(5000);
    amend(store, "Pod", "ingester-zone-a-1", { annotations: { "sim/crash": "true" } });
    const session = startSession(stage);
    t.after(async () => {
      await session.end();
      await stage.close();
    });
    await session.tick();
    await stage.time.advance(60_000);
    await session.tick();

    const { run } = await openTerminal(t, stage);
    const pod = await run("explain pod/ingester-zone-a-1");
    assert.equal(pod.code, 1, pod.out);
    assert.match(pod.out, /^ {2}Blocks its group {2}ZoneNotReady$/m);
    assert.match(
      pod.out,
      /why +ingester-zone-a-1 \(CrashLoopBackOff\) keeps group ingester waiting; roll out: ZoneNotReady, /,
    );
    assert.match(pod.out, /blocks +rolloutgroup\/ingester$/m);
    const healthy = await run("explain pod/ingester-zone-b-1");
    assert.doesNotMatch(healthy.out, /Blocks its group/);

    const group = await run("explain ingester");
    const cure = /fix +delete the pod; .*\n +kubectl -n default delete pod (\S+)\n +or /.exec(group.out)?.[1];
    assert.equal(cure, "ingester-zone-a-1", group.out);
    assert.doesNotMatch(group.out, /undo/);
    const uids = (): (string | undefined)[] =>
      store.list("pods").flatMap(({ metadata }) => (metadata.name === cure ? [] : [metadata.uid]));
    const others = uids();
    store.remove("pods", "default", cure ?? "");
    await stage.time.advance(5000);
    await session.tick();
    assert.equal((await run("explain ingester")).code, 0);
    assert.deepEqual(uids(), others);
  },
);

it("explain repeats a preparation that a pod has refused, until it is old or the zone was scaled down", async (t) => {
  const stage = await setStatusStage();
  t.after(() => stage.close());
  deploy(stage, "app:1");
  await stage.time.advance(5000);
  const { store } = stage.emulator;
  const { metadata } = store.get("statefulsets.apps", "default", "ingester-zone-a") ?? assert.fail();
  const { cluster } = stage.connect();
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const { emitEvents, flush } = createRecorder({ cluster, clock: stage.clock, log, instance: "test" });
  const refused =
    "one or more pods failed to prepare for shutdown: ingester-zone-a-2 at http://x/prepare: it answered 500.";
  const regarding = {
    kind: "StatefulSet",
    namespace: "default",
    name: "ingester-zone-a",
    uid: metadata.uid ?? "",
  } as const;
  emitEvents([{ regarding, type: "Warning", reason: "PrepareFailed", message: refused }]);
  await flush();
  const { run } = await openTerminal(t, stage);
  for (const object of ["group/ingester", "sts/ingester-zone-a"]) {
    const { code, out } = await run(`explain ${object}`);
    assert.equal(code, 1, out);
    assert.match(
      out,
      /scale: Blocked {2}PrepareFailed\n +why +one or more pods .*: ingester-zone-a-2 at http:\/\/x\/prepare: it answered 500\.$/m,
    );
    assert.match(out, /kubectl -n default logs ingester-zone-a-2$/m);
  }
  assert.equal((await run("explain sts/ingester-zone-b")).code, 0);
  await stage.time.advance(11 * 60_000);
  assert.equal((await run("explain group/ingester")).code, 0);
});
