/** A rollout that begins beside a downscale that a webhook admits: never two zones of a group at once. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { B, createShrinkWorld } from "./shrink-world.ts";
import { createStepper, playEveryOrder, type Choose } from "./stepper.ts";

const MAX_ORDERS = 10_000;

/** What a play reached, by the reports of the reconciler and the answers to the user. */
const CASES = {
  "the rollout waits for the Lease":
    /ingester-zone-a waits: the downscale Lease of its group is held for ingester-zone-b/,
  "the rollout waits for an admission":
    /ingester-zone-a waits: the downscale of ingester-zone-b .* may still be stored/,
  "the user waits for the Lease": /statefulset ingester-zone-a is already in process of updating replicas/,
};

type Reached = Record<string, number>;

/** Resolves with the number of zones that were disrupted. */
async function play(choose: Choose, reached: Reached): Promise<number> {
  const stepper = createStepper();
  const world = createShrinkWorld({ stepper, keepsReplicas: true });
  const texts: string[] = [];
  const deploying = world.deployA();
  const reconciling = deploying.then(async () => {
    const outcome = await world.reconcile();
    if (outcome?.state === "held") texts.push(outcome.hold.message);
  });
  const asking = world.shrinkB().then((refusal) => texts.push(refusal ?? ""));
  await stepper.run(choose);
  await Promise.all([reconciling, asking]);
  const happened = [world.deleted.size > 0 ? "a pod was deleted" : "", ...world.shrunk].filter((what) => what !== "");
  const cases = Object.entries(CASES).flatMap(([name, text]) => (texts.some((one) => text.test(one)) ? [name] : []));
  for (const what of [...happened, ...cases]) reached[what] = (reached[what] ?? 0) + 1;
  return happened.length;
}

describe("a rollout that begins beside a downscale of another zone through the webhook, in every order of their API calls", () => {
  it("disrupts one zone only: the other one waits", async () => {
    const reached: Reached = {};
    const plays = await playEveryOrder(
      async (choose) => assert.ok((await play(choose, reached)) <= 1, "two zones were disrupted at once"),
      MAX_ORDERS,
    );
    assert.ok(plays > 100, String(plays));
    for (const what of ["a pod was deleted", B, ...Object.keys(CASES)])
      assert.ok((reached[what] ?? 0) >= 5, `${what}: ${JSON.stringify(reached)}`);
  });
});
