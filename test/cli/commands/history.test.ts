import assert from "node:assert/strict";
import { it } from "node:test";
import { createRecorder } from "../../../reconciler/report/act/reporter.ts";
import { openTerminal } from "../stage.ts";
import { setOf, setRollout } from "./half-rolled.ts";

interface Document {
  readonly zones: readonly {
    readonly zone: string;
    readonly revisions: readonly {
      readonly name: string;
      readonly number: number;
      readonly images: readonly string[];
      readonly pods: readonly string[];
      readonly outcome: string;
      readonly at?: string;
    }[];
  }[];
}

it("history shows the revisions of each zone: image, age, which pods run it, and what came of it", async (t) => {
  const stage = await setRollout(t);
  const { metadata, status } = setOf(stage, "c");
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const { emitEvents, flush } = createRecorder({
    cluster: stage.connect().cluster,
    clock: stage.clock,
    log,
    instance: "t",
  });
  const regarding = {
    kind: "StatefulSet",
    namespace: "default",
    name: "ingester-zone-c",
    uid: metadata?.uid ?? "",
  } as const;
  const message = `all pods of ingester-zone-c are updated to ${status?.currentRevision} and ready`;
  emitEvents([{ regarding, type: "Normal", reason: "ZoneUpdated", message }]);
  await flush();
  await stage.time.advance(60_000);

  const { run, json } = await openTerminal(t, stage);
  const { zones } = await json<Document>("history ingester");
  const shown = zones.map(({ zone, revisions }) => [
    zone,
    revisions.map(({ number, images, pods, outcome }) => [number, images.join(), pods.length, outcome]),
  ]);
  assert.deepEqual(shown, [
    [
      "ingester-zone-a",
      [
        [2, "app:2", 3, "finished"],
        [1, "app:1", 0, ""],
      ],
    ],
    [
      "ingester-zone-b",
      [
        [2, "app:2", 1, "under way: 1 of 3 pods"],
        [1, "app:1", 2, ""],
      ],
    ],
    [
      "ingester-zone-c",
      [
        [2, "app:2", 0, "not started"],
        [1, "app:1", 3, "finished"],
      ],
    ],
  ]);
  assert.match(zones[2]?.revisions[1]?.at ?? "", /^2026-/);
  assert.equal(zones[1]?.revisions[0]?.name, setOf(stage, "b").status?.updateRevision);

  const { code, out } = await run("history ingester");
  assert.equal(code, 0);
  assert.match(out, /^ZONE +REVISION +IMAGES +NAME +AGE +PODS +OUTCOME$/m);
  assert.match(
    out,
    /^ingester-zone-b +2 +app:2 +ingester-zone-b-\S+ +1m\d+s +ingester-zone-b-0 +under way: 1 of 3 pods$/m,
  );
  assert.match(
    out,
    /^ +1 +app:1 +ingester-zone-c-\S+ +\S+ +ingester-zone-c-0, ingester-zone-c-1, ingester-zone-c-2 +finished 1m ago$/m,
  );
  assert.equal((await run("history nobody")).code, 4);
  assert.match((await run("explain ingester")).out, /updating \S+ to app:2 \(ingester-zone-b-\w+\)$/m);
});
