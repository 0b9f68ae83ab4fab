/** The reuse of reservations by a second request, and the latest time for a new one. */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { type DisruptionOptions, reserved, setBudgetStage, startProcess, writeBudget } from "../budget-stage.ts";
import type { Stage } from "../stage.ts";

const POD = "ingester-zone-a-0";

let stage: Stage;
afterEach(() => stage.close());

describe("a young reservation", () => {
  const ROLLOUT = { rollout: { maxUnavailable: 1 } };
  const CASES: readonly [string, DisruptionOptions, by: string][] = [
    ["for an eviction is reused by an eviction through another process", {}, "one"],
    ["of a rollout, which may release it, is not reused by an eviction", ROLLOUT, "two"],
  ];
  for (const [name, first, by] of CASES)
    it(name, async () => {
      stage = await setBudgetStage();
      writeBudget(stage);
      assert.equal(await startProcess(stage, "one").requestDisruption("zone-a-0", first), "Allowed");
      await stage.time.advance(20_000);
      assert.equal(await startProcess(stage, "two").requestDisruption("zone-a-0"), "Allowed");
      assert.equal(reserved(stage)[POD]?.by, by);
    });
});

it("shortly before the deadline nothing is reserved: the write could take effect after the answer", async () => {
  stage = await setBudgetStage();
  writeBudget(stage);
  const { cluster, calls } = stage.connect();
  const slow: typeof cluster = {
    ...cluster,
    async *list(resource, query) {
      yield* cluster.list(resource, query);
      if (resource.plural === "pods") await stage.time.advance(4970);
    },
    replace: (resource, replacement) => cluster.replace(resource, replacement),
  };
  const { requestDisruption } = startProcess({ ...stage, connect: () => ({ cluster: slow, calls }) });
  assert.equal(await requestDisruption("zone-a-0", { deadlineMs: 5000 }), "NotNow");
  assert.deepEqual(reserved(stage), {});
});
