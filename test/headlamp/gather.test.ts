/** What the plugin reads of several namespaces, from the embedded cluster. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { listPart } from "../../functions/status/view/records.ts";
import { createReading } from "../../headlamp/src/gather.ts";
import { define } from "../demo/definitions.ts";
import { setStage } from "../functions/stage.ts";

test("a namespace that forbids reads hides no gates and PhasedRollouts of the others", async (t) => {
  const { emulator, cluster } = await setStage(t);
  const { store, faults } = emulator;
  await define(store, ["rolloutgates", "phasedrollouts"]);
  const add = (name: string, namespace: string): void => {
    const metadata = { name, namespace };
    store.create("rolloutgates.zonewise.dev", {
      apiVersion: "zonewise.dev/v1",
      kind: "RolloutGate",
      metadata,
      spec: { group: "store" },
    });
    store.create("phasedrollouts.sts.plus", {
      apiVersion: "sts.plus/v1alpha1",
      kind: "PhasedRollout",
      metadata,
      spec: { targetRef: "db", check: { query: { expr: "up == 0", url: "http://prom" } } },
    });
  };
  add("old", "gone");
  const clock = { now: () => Date.now(), monotonic: () => 0, sleep: async () => {} };
  const read = createReading({ open: () => cluster, clock, namespaces: ["gone", "default"] });
  await read(undefined);
  faults.inject({ verb: "list", namespace: "gone", effect: { kind: "forbidden" } });
  add("new", "default");
  const { gates, phased } = await read(undefined);
  assert.deepEqual(
    [listPart(gates).map(({ ref }) => ref.name), listPart(phased).map(({ rollout }) => rollout.name)],
    [
      ["old", "new"],
      ["old", "new"],
    ],
  );
});
