import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Pod } from "../../emulator/controllers/objects.ts";
import { createScheduler, type NodeFacts } from "./pick-node.ts";

const node = (zone: string, podCount = 0, isSchedulable = true): NodeFacts => ({
  isSchedulable,
  labels: { zone },
  podCount,
});
const real: NodeFacts = { isSchedulable: true, labels: { "sim/real": "true" }, podCount: 0 };
const NODES = new Map([
  ["n1", node("z1", 5)],
  ["n2", node("z2", 3)],
  ["n3", node("z2", 1)],
  ["cordoned", node("z2", 0, false)],
  ["reserved", { isSchedulable: true, labels: { zone: "z3", "sim/reserved": "true" }, podCount: 0 }],
  ["real", real],
]);

let pods = 0;

/** A pod of the StatefulSet whose UID is `owner`. */
function pod(owner: string, spec: Partial<Pod["spec"]> = {}, annotations: Record<string, string> = {}): Pod {
  pods += 1;
  const ownerReferences = [{ apiVersion: "apps/v1", kind: "StatefulSet", name: owner, uid: owner, controller: true }];
  const metadata = {
    name: `p${pods}`,
    uid: `p${pods}`,
    resourceVersion: "1",
    creationTimestamp: "",
    annotations,
    ownerReferences,
  };
  return { apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [], ...spec }, status: {} };
}

function named(name: string): Partial<Pod["spec"]> {
  const matchFields = [{ key: "metadata.name", operator: "In", values: [name] }];
  return {
    affinity: {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] } },
    },
  };
}

const CASES: readonly [string, Pod, string | undefined][] = [
  ["a DaemonSet's pod goes to the node that it names", pod("a", named("n2")), "n2"],
  ["a DaemonSet's pod goes to a cordoned node too", pod("a", named("cordoned")), "cordoned"],
  ["a DaemonSet's pod waits for a node that is gone", pod("a", named("gone")), undefined],
  [
    "a nodeSelector picks the emptiest schedulable node with the labels",
    pod("a", { nodeSelector: { zone: "z2" } }),
    "n3",
  ],
  ["a nodeSelector that no node fits picks none", pod("a", { nodeSelector: { zone: "z9" } }), undefined],
  ["the real node takes the pods that ask for it", pod("a", { nodeSelector: { "sim/real": "true" } }), "real"],
  ["a reserved node takes the pods that select it", pod("a", { nodeSelector: { zone: "z3" } }), "reserved"],
  ["sim/node names a node", pod("a", {}, { "sim/node": "n3" }), "n3"],
  ["sim/node gives way where that node is cordoned", pod("a", {}, { "sim/node": "cordoned" }), "n1"],
  ["without any wish it is the first turn's node", pod("a"), "n1"],
];

describe("the simulated scheduler", () => {
  for (const [title, asking, expected] of CASES)
    it(title, () => assert.equal(createScheduler()(asking, NODES), expected));

  it("keeps the pods of an owner together and gives owners nodes in turn, never the real one, nor a reserved one", () => {
    const pick = createScheduler();
    const picked = ["a", "b", "a", "c", "d", "e", "b", "f"].map((owner) => pick(pod(owner), NODES));
    assert.deepEqual(picked, ["n1", "n2", "n1", "n3", "n1", "n1", "n2", "n2"]);
  });
});
