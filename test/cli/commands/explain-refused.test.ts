/** Downscales that a webhook has refused. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { setStatusStage } from "../../reconciler/group-status/act/status-stage.ts";
import { deploy } from "../../reconciler/stage.ts";
import { createRecorder } from "../../../reconciler/report/act/reporter.ts";
import { openTerminal } from "../stage.ts";

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
