/** A zone's status is written, and a pod deleted, only if the zone is as it was when it was judged: 409 tells of it. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { hasCode } from "../../../../infra/errors.ts";
import type { Outcome } from "../../../../reconciler/model/outcome.ts";
import { deploy, setStage, tickOnce, type Stage } from "../../stage.ts";
import { witness, type Witness } from "../../witness.ts";

const SETS = "statefulsets.apps";

let stage: Stage;
let seen: Witness;
let released: string[];
beforeEach(async () => {
  stage = await setStage();
  deploy(stage, "x:1");
  await stage.time.advance(2000);
  deploy(stage, "x:2");
  await stage.time.advance(500);
  seen = witness(stage);
  released = [];
});
afterEach(() => stage.close());

async function tick(): Promise<Outcome> {
  const { outcomes } = await tickOnce(stage, stage.connect().cluster, {
    mayDisrupt: async ({ name }) => ({ action: "grant", release: async () => void released.push(name) }),
  });
  return outcomes[0] ?? assert.fail();
}

const conflict = (times: number): void =>
  void stage.emulator.faults.inject({ effect: { kind: "conflict" }, resource: SETS, verb: "patch", times });

function assertSuperseded(outcome: Outcome): void {
  assert.ok(outcome.state === "superseded" && hasCode(outcome.error, "Conflict"), JSON.stringify(outcome));
}

describe("a zone that has changed since it was judged, as 409 tells,", () => {
  it("loses no pod before it is confirmed: after three times the grant is released, and the group is gathered again", async () => {
    conflict(3);
    assertSuperseded(await tick());
    assert.deepEqual([seen.deleted, released], [[], ["ingester-zone-a-0"]]);
    await tick();
    assert.deepEqual(seen.deleted, ["ingester-zone-a-0"]);
  });

  it("is not reported as finished, and the next tick finishes it", async () => {
    for (const i of [0, 1, 2]) stage.emulator.store.remove("pods", "default", `ingester-zone-a-${i}`);
    await stage.time.advance(3000);
    const isRecorded = (): boolean => {
      const { status } = stage.emulator.store.get(SETS, "default", "ingester-zone-a") ?? assert.fail();
      const { currentRevision, updateRevision } = status as Record<string, string>;
      return currentRevision === updateRevision;
    };
    conflict(1);
    assertSuperseded(await tick());
    assert.equal(isRecorded(), false);
    const next = await tick();
    assert.equal(next.state === "acted" && next.decision.action, "finishZone");
    assert.equal(isRecorded(), true);
  });
});
