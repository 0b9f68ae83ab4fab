/** The reuse of reservations by a second request, and the latest time for a new one. */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { evictionIdentity } from "../../../reconciler/budget/reservation.ts";
import { reserved, setBudgetStage, startProcess, writeBudget } from "../budget-stage.ts";
import type { Stage } from "../stage.ts";

const POD = "ingester-zone-a-0";

let stage: Stage;
afterEach(() => stage.close());

describe("a young reservation", () => {
  const [one, two] = ["one", "two"].map(evictionIdentity);
  const CASES: readonly [string, string | undefined, string | undefined, string | undefined][] = [
    ["for an eviction is reused by an eviction through another process", one, two, one],
    ["of a rollout, which may release it, is not reused by an eviction", "rollout", one, one],
  ];
  for (const [name, first, second, by] of CASES)
    it(name, async () => {
      stage = await setBudgetStage();
      writeBudget(stage);
      assert.equal(await startProcess(stage, first).requestDisruption("zone-a-0"), "Allowed");
      await stage.time.advance(20_000);
      assert.equal(await startProcess(stage, second).requestDisruption("zone-a-0"), "Allowed");
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
