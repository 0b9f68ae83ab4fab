/** Which pod an allowed eviction can reach (§5.8). */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BUDGETS, reserved, setBudgetStage, writeBudget } from "../../reconciler/budget-stage.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { callWebhook, eviction, uidOf, VALIDATING } from "./eviction-stage.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await setBudgetStage();
  writeBudget(stage);
});
afterEach(() => stage.close());

const add = (path: string, value: unknown): object[] => [{ op: "add", path: `/deleteOptions${path}`, value }];

/** The client's deleteOptions, and the patch. */
const PINS: readonly [what: string, deleteOptions: object | null | undefined, patch: object[]][] = [
  ["no deleteOptions", undefined, add("", { preconditions: { uid: "UID" } })],
  ["deleteOptions that are null", null, add("", { preconditions: { uid: "UID" } })],
  ["a grace period", { gracePeriodSeconds: 5 }, add("/preconditions", { uid: "UID" })],
  ["preconditions that are null", { preconditions: null }, add("/preconditions", { uid: "UID" })],
  ["a resourceVersion", { preconditions: { resourceVersion: "7" } }, add("/preconditions/uid", "UID")],
  ["a UID that is null", { preconditions: { uid: null } }, add("/preconditions/uid", "UID")],
];

describe("an eviction is bound to the judged pod", () => {
  for (const [what, deleteOptions, patch] of PINS) {
    it(`an allowed eviction is pinned to the judged pod: ${what}`, async () => {
      const { answer } = await callWebhook(stage, { object: eviction(deleteOptions) });
      const uid = uidOf(stage, "ingester-zone-a-0");
      assert.deepEqual(answer.patch, JSON.parse(JSON.stringify(patch).replace("UID", uid)));
      assert.equal(reserved(stage)["ingester-zone-a-0"]?.uid, uid);
      assert.equal((await callWebhook(stage, { object: eviction(deleteOptions) }, VALIDATING)).answer.patch, undefined);
    });
  }

  it("the client's UID stays", async () => {
    const own = { preconditions: { uid: uidOf(stage, "ingester-zone-a-0") } };
    const { answer } = await callWebhook(stage, { object: eviction(own) });
    assert.deepEqual([answer.allowed, answer.patch], [true, undefined]);
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
  });

  it("an eviction pinned to another UID is allowed without a reservation: it cannot take effect", async () => {
    const { answer } = await callWebhook(stage, { object: eviction({ preconditions: { uid: "of the one before" } }) });
    assert.deepEqual([answer.allowed, answer.reason, answer.patch], [true, "OtherPod", undefined]);
    assert.deepEqual(reserved(stage), {});
  });

  it("a terminating pod may be evicted again with its UID, but not without", async () => {
    const uid = uidOf(stage, "ingester-zone-c-2");
    stage.emulator.store.remove("pods", "default", "ingester-zone-c-2");
    const name = "ingester-zone-c-2";
    const mutating = (await callWebhook(stage, { name, object: eviction() })).answer;
    assert.deepEqual([mutating.allowed, mutating.warnings], [true, ["pod is not ready"]]);
    assert.deepEqual(mutating.patch, [{ op: "add", path: "/deleteOptions", value: { preconditions: { uid } } }]);
    const validating = (await callWebhook(stage, { name, object: eviction() }, VALIDATING)).answer;
    assert.deepEqual([validating.code, validating.reason], [429, "PodTerminating"]);
    assert.equal(
      (await callWebhook(stage, { name, object: eviction({ preconditions: { uid } }) }, VALIDATING)).answer.allowed,
      true,
    );
  });

  it("registered as validating, it allows no eviction with a UID in the 15 s after one without: that one might then reach the successor", async () => {
    const pinned = eviction({ preconditions: { uid: uidOf(stage, "ingester-zone-a-0") } });
    assert.equal((await callWebhook(stage, { object: eviction() }, VALIDATING)).answer.reason, "Allowed");
    const again = (await callWebhook(stage, { object: pinned }, VALIDATING)).answer;
    assert.deepEqual([again.code, again.reason], [429, "AllowedAlready"]);
    await stage.time.advance(15_000);
    for (let i = 0; i < 2; i++)
      assert.equal((await callWebhook(stage, { object: pinned }, VALIDATING)).answer.reason, "Allowed");
  });

  it("an eviction of a pod without a budget is pinned as well: its successor may be under one", async () => {
    stage.emulator.store.remove(BUDGETS, "default", "ingester");
    const { answer } = await callWebhook(stage, { object: eviction() });
    const uid = uidOf(stage, "ingester-zone-a-0");
    assert.deepEqual([answer.reason, answer.patch], ["PodNotInScope", add("", { preconditions: { uid } })]);
  });

  it("registered as validating, it allows a UID once in 15 s for as long as it is called", async () => {
    const reasons: (string | undefined)[] = [];
    for (let second = 0; second <= 30; second += 3) {
      reasons.push((await callWebhook(stage, { object: eviction() }, VALIDATING)).answer.reason);
      await stage.time.advance(3000);
    }
    const refused = Array.from({ length: 4 }, () => "AllowedAlready");
    assert.deepEqual(reasons, ["Allowed", ...refused, "Allowed", ...refused, "Allowed"]);
  });

  it("registered as both, it refuses nothing and reserves nothing twice", async () => {
    const versionOf = (): string | undefined =>
      stage.emulator.store.get(BUDGETS, "default", "ingester")?.metadata.resourceVersion;
    const uid = uidOf(stage, "ingester-zone-a-0");
    assert.equal((await callWebhook(stage, { object: eviction() })).answer.reason, "Allowed");
    const [version, before] = [versionOf(), reserved(stage)];
    assert.equal(
      (await callWebhook(stage, { object: eviction({ preconditions: { uid } }) }, VALIDATING)).answer.reason,
      "Allowed",
    );
    assert.deepEqual([versionOf(), reserved(stage)], [version, before]);
  });
});
