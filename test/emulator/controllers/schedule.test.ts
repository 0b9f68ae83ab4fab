import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { put, type KubeObject } from "../objects.ts";
import type { Pod } from "./objects.ts";
import { pickNode } from "./schedule.ts";
import { make, pod as podOf, stored } from "../../builders/objects.ts";

const node = (name: string, labels: Record<string, string>): KubeObject => stored(make("Node", name, { labels }));
const NODES = [
  node("n1", { zone: "z1" }),
  node("n2", { zone: "z2" }),
  node("n3", { zone: "z2" }),
  put(node("cordoned", { zone: "z2" }), ["spec", "unschedulable"], true),
  put(node("down", { zone: "z2" }), ["status", "conditions"], [{ type: "Ready", status: "False" }]),
  node("reserved", { zone: "z3", "sim/reserved": "true" }),
  node("real", { "sim/real": "true" }),
];
const bound = () => ["n1", "n2", "n2", "n2", "n3"];

let pods = 0;

/** A pod of the StatefulSet whose UID is `owner`. */
function pod(owner: string, spec: Partial<Pod["spec"]> = {}, annotations: Record<string, string> = {}): Pod {
  pods += 1;
  const owned = podOf(`p${pods}`, {
    annotations,
    owner: { name: owner, uid: owner },
    spec: { containers: [], ...spec },
  });
  return stored(owned) as unknown as Pod;
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
  ["sim/node gives way where that node is not Ready", pod("a", {}, { "sim/node": "down" }), "n1"],
  ["without any wish it is the first turn's node", pod("a"), "n1"],
];

describe("the simulated scheduler", () => {
  for (const [title, asking, expected] of CASES)
    it(title, () => assert.equal(pickNode(asking, { nodes: NODES, bound, turn: 0 }), expected));

  it("gives owners nodes in turn, never one that takes no pods, the real one or a reserved one", () => {
    const picked = [0, 1, 2, 3, 4, 5, 6].map((turn) => pickNode(pod("a"), { nodes: NODES, bound, turn }));
    assert.deepEqual(picked, ["n1", "n2", "n3", "n1", "n1", "n1", "n2"]);
  });
});
