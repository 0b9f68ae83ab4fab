import assert from "node:assert/strict";
import { it } from "node:test";
import { orderDrains, splitsOf, type DrainNode } from "../../../cli/decide/waves.ts";
import { worldOf } from "../../builders/groups.ts";
import { zonesOf } from "./worlds.ts";

const [pod = assert.fail()] = worldOf(zonesOf({})).zones.flatMap(({ pods }) => pods);

/**
 * `a`: a pod of zone a, under a budget; `b!`: of zone b, which is down already; `a-`: of a group without a budget; `a0`:
 * of partition 0 of a budget that counts by partitions.
 */
function node(name: string, topologyZone: string, ...pods: readonly string[]): DrainNode {
  const claims = pods.map((text) => ({
    pod,
    budget: text.endsWith("-") ? undefined : "test/budget",
    partition: /\d/.exec(text)?.[0],
    group: "test/group",
    zone: text.slice(0, 1),
    isDown: text.endsWith("!"),
    refusal: undefined,
  }));
  return { name, topologyZone, claims };
}

const CASES = [
  {
    name: "nodes of one zone go together, zone after zone",
    nodes: [node("n3", "z2", "b"), node("n1", "z1", "a"), node("n2", "z1", "a")],
    waves: [["n1", "n2"], ["n3"]],
  },
  {
    name: "the zone that is down already goes first",
    nodes: [node("n1", "z1", "a"), node("n3", "z2", "b!")],
    waves: [["n3"], ["n1"]],
  },
  {
    name: "a node without guarded pods goes with the first",
    nodes: [node("n1", "z1", "a"), node("n2", "z2")],
    waves: [["n1", "n2"]],
  },
  {
    name: "nodes of the only zone, or beside zones of no pods, go together",
    nodes: [node("n2", "z1", "a"), node("n1", "z1", "a"), node("n3", "z2")],
    waves: [["n1", "n2", "n3"]],
  },
  {
    name: "a node with pods of both zones goes alone",
    nodes: [node("n1", "z1", "a"), node("n2", "z1", "a", "b"), node("n3", "z1", "b")],
    waves: [["n1"], ["n2"], ["n3"]],
  },
  {
    name: "zones of a group without a budget go one after the other",
    nodes: [node("n1", "z1", "a-"), node("n2", "z2", "b-"), node("n3", "z3", "c-")],
    waves: [["n1"], ["n2"], ["n3"]],
  },
  {
    name: "zones of a group go one after the other, where a budget selects one of them alone",
    nodes: [node("n1", "z1", "a"), node("n2", "z2", "b-")],
    waves: [["n1"], ["n2"]],
  },
  {
    name: "different partitions of two zones go together, and the same one does not",
    nodes: [node("n1", "z1", "a0"), node("n2", "z2", "b1"), node("n3", "z2", "b0")],
    waves: [["n1", "n2"], ["n3"]],
  },
];
for (const { name, nodes, waves } of CASES)
  it(name, () =>
    assert.deepEqual(
      orderDrains(nodes).map((wave) => wave.nodes.map((one) => one.name)),
      waves,
    ),
  );

it("a node whose drain has to wait in the middle is known", () => {
  assert.deepEqual(splitsOf(node("n", "z", "a", "b")), ["budget test/budget"]);
  assert.deepEqual(splitsOf(node("n", "z", "a-", "b-")), ["group test/group"]);
  assert.deepEqual(splitsOf(node("n", "z", "a", "a")), []);
});
