/** What a PhasedRollout asks of Prometheus. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { KubeObject } from "../../../emulator/objects.ts";
import { applySet, edit, FIRING, PHASED } from "./stage.ts";
import { partitionOf, play, reasons } from "./play.ts";
import { add } from "../../../builders.ts";

const annotate = (name: string, value: string) => (object: KubeObject) => {
  object.metadata.annotations = { ...object.metadata.annotations, [name]: value };
  return object;
};

it("a promotion by hand needs no checks, once", () =>
  play({}, async (stage) => {
    await stage.tickFor(10);
    stage.answer = FIRING;
    await applySet(stage, "x:2");
    await stage.tickFor(10);
    const { updateRevision } = stage.set().status as unknown as { updateRevision: string };
    edit(stage, PHASED, "guard", annotate("sts.plus/promote-step", `${updateRevision}/3`));
    await stage.tickFor(120);
    assert.equal(partitionOf(stage), 2);
  }));

it("a Secret is read by its name; without it there is no answer, and with it the checks go on without any other change", () =>
  play(
    {},
    async (stage) => {
      await stage.tickFor(10);
      await applySet(stage, "x:2");
      await stage.tickFor(40);
      assert.ok(reasons(stage).includes("PrometheusError"));
      assert.equal(stage.asked.length, 0);
      const data = { token: Buffer.from("secret-token").toString("base64") };
      add(stage.emulator.store, "Secret", "prom", { data });
      await stage.tickFor(25);
      assert.ok((partitionOf(stage) ?? 3) < 3);
      assert.deepEqual(
        new Set(stage.calls.filter((call) => call.includes("secrets"))),
        new Set(["GET core/v1/secrets object"]),
      );
      const shown = JSON.stringify([stage.rollout(), stage.events, stage.logged]);
      assert.ok(!shown.includes("secret-token"));
    },
    { query: { secretRef: "prom" } },
  ));

it("what a server answers is shown as it is", () =>
  play({}, async (stage) => {
    stage.answer = { kind: "Error", code: "BadQuery", message: "100% %s %d wrong" };
    await stage.tickFor(10);
    await applySet(stage, "x:2");
    await stage.tickFor(30);
    assert.ok(stage.events.some(({ message }) => message === "BadQuery: 100% %s %d wrong"));
  }));
