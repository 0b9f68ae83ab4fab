import assert from "node:assert/strict";
import { it } from "node:test";
import { usedBytes } from "../../../used-bytes.ts";
import { storedBudget } from "../../../builders/budgets.ts";
import { podObject } from "../../../builders/zones.ts";
import { factsOf } from "../scene.ts";
import { startProcess } from "../adapter.ts";

const STATEFUL_SETS = 300;

it("of the budget that a StatefulSet's pods were under, a process keeps its name alone", async () => {
  // As long as the labels of a pod may be, which the budget selects by.
  const matchLabels = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${i}`, "v".repeat(63)]));
  const facts = { ...factsOf({}), budgets: [storedBudget({ selector: { matchLabels } })] };
  const one = startProcess(facts);
  const askAll = async (group: string): Promise<void> => {
    for (let i = 0; i < STATEFUL_SETS; i++) {
      const pod = podObject(`${group}-${i}`, 0);
      const labels = { ...pod.metadata?.labels, ...matchLabels };
      one.change({ ...facts, pods: [{ ...pod, metadata: { ...pod.metadata, labels } }] });
      // What the budget says: its pod is the only one.
      assert.equal((await one.evict({ pod: `${group}-${i}-0` })).reason, "TooFewZones");
    }
  };
  await askAll("warm-up");
  const before = usedBytes();
  await askAll("store");
  const growth = usedBytes() - before;
  assert.ok(growth < 1_000_000, `${growth} bytes more`);
});

it("of a namespace without budgets, a process keeps nothing: pods of a batch share one list, the next batch reads again", async () => {
  const { budgets, ...facts } = factsOf({});
  const one = startProcess({ ...facts, budgets: [] });
  const pods = facts.pods.map(({ metadata }) => metadata?.name ?? "").slice(0, 2);
  const askBoth = () => Promise.all(pods.map((pod) => one.evict({ pod, rollout: 2 })));
  assert.deepEqual(new Set((await askBoth()).map(({ reason }) => reason)), new Set(["PodNotInScope"]));
  assert.deepEqual(one.calls, ["list zoneawarepoddisruptionbudgets"]);
  one.change({ ...facts, budgets });
  const [first, second] = await askBoth();
  assert.ok(![first?.reason, second?.reason].includes("PodNotInScope"), JSON.stringify([first, second]));
});
