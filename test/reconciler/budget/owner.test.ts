import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { startProcess, type Facts } from "./adapter.ts";
import { factsOf } from "./builders.ts";

const POD = "ingester-zone-a-0";

async function judge(facts: Facts): Promise<string> {
  const { reason, message } = await startProcess(facts).evict({ pod: POD });
  return `${VERDICTS[reason].code} ${reason}: ${message}`;
}

/** The pod has this owner, or none. */
function ownedBy(owner?: NonNullable<NonNullable<PodObject["metadata"]>["ownerReferences"]>[number]): Facts {
  const facts = factsOf({});
  const pods = facts.pods.map((pod) =>
    pod.metadata?.name === POD ? { ...pod, metadata: { ...pod.metadata, ownerReferences: owner ? [owner] : [] } } : pod,
  );
  return { ...facts, pods };
}

describe("the StatefulSets of an eviction", () => {
  it("needs two StatefulSets", async () => {
    const facts = factsOf({});
    const alone = { ...facts, statefulSets: facts.statefulSets.slice(0, 1), pods: facts.pods.slice(0, 3) };
    assert.equal(await judge(alone), "400 TooFewZones: minimum number of StatefulSets not found");
  });

  it(`may be ${MAX_ZONES} of a group; with one more no pod of the group goes, and pods of other groups do`, async () => {
    const answerOf = (count: number, more = {}): Promise<string> =>
      judge(
        factsOf({ zones: { ...Object.fromEntries(Array.from({ length: count - 3 }, (_, i) => [i, {}])), ...more } }),
      );
    assert.match(await answerOf(MAX_ZONES), /^200 Allowed/);
    assert.match(await answerOf(MAX_ZONES, { other: { group: "distributor" } }), /^200 Allowed/);
    assert.equal(await answerOf(MAX_ZONES + 1), "400 TooManyZones: group ingester has 33 zones, more than 32");
  });

  // Upstream answers 500, but a foreseeable case is no server error.
  it("a pod without an owner, or owned by another kind than StatefulSet, is refused for good", async () => {
    assert.equal(await judge(ownedBy()), "400 OwnerNotFound: unable to find a StatefulSet pod owner");
    assert.equal(
      await judge(ownedBy({ apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", uid: "rs", controller: true })),
      `400 OwnerNotFound: pod owner is not a StatefulSet - ${POD} has owner rs (ReplicaSet)`,
    );
  });

  // Upstream stops here (13.15).
  it("an owner that the budget does not select is refused for good", async () => {
    const facts = factsOf({});
    const statefulSets = facts.statefulSets.map((set, i) =>
      i === 0 ? { ...set, metadata: { ...set.metadata, labels: {} } } : set,
    );
    assert.match(
      await judge({ ...facts, statefulSets }),
      /^400 OwnerNotFound: unable to find StatefulSet ingester-zone-a by name: .* budget ingester selects$/,
    );
  });
});
