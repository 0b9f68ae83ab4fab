import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { UpdateNode } from "../../../reconciler/nodes/node.ts";
import { rowsOf, tell, upkeepOf } from "./adapter.ts";
import { node } from "./fixture.ts";

/** `what is so | the node, and whether it is active, released by a person or without a policy | what is done`. */
const CASES = `
  a shadow is created for a managed node | a noshadow | createShadow
  not for another one | a noshadow unmanaged | nothing
  nor for one that is being deleted | a noshadow deleted | nothing
  it stays with a managed node | a | nothing
  it goes with the label | a unmanaged | deleteShadow
  in whatever state | a R/E unmanaged | deleteShadow
  not before the node is uncordoned | a unmanaged cordoned | uncordon
  nor before the node is back from its reboot | a R/S unmanaged announced | nothing
  nor while the node is active | a unmanaged, active | nothing
  it is deleted once | a unmanaged going | nothing
  a person's cordon is left alone | a bycordon | nothing
  ours is undone once Idle is wanted | a cordoned | uncordon
  also if the agent is silent | a I/S cordoned, active | uncordon
  it stays for the drain | a R/S cordoned, active | nothing
  and on a node that is not Ready | a cordoned notready | nothing
  and while the node is about to reboot | a I/S cordoned announced, active | nothing
  but not once a person has released that node | a I/S cordoned announced, released | uncordon
  nor in a new boot | a I/S cordoned announced newboot | uncordon
  nor when its shadow is gone | a noshadow unmanaged cordoned | uncordon
  nor when its shadow is another one | a cordonedearlier | uncordon
  nor on a node that is not managed any more | a R/S unmanaged cordoned | uncordon
  a node without a policy goes back to Idle, also in its drain | a R/S, ungoverned | resetShadow
  and stays there | a, ungoverned | nothing
  and is put right by its label if it has lost that as well | a M/I unmanaged, ungoverned | deleteShadow
`;

for (const [name = "", scene = "", expected] of rowsOf(CASES))
  it(`upkeep: ${name}`, () => {
    const [nodes = "", ...so] = scene.split(", ");
    const named = (what: string): string[] => (so.includes(what) ? ["a"] : []);
    const plan = upkeepOf([tell(nodes).node], {
      active: new Map(named("active").map((one) => [one, false])),
      released: new Set(named("released")),
      isGoverned: !so.includes("ungoverned"),
    });
    assert.equal(plan.map(({ action }) => action).join() || "nothing", expected);
  });

describe("a cordon", () => {
  it("is undone together with our exclusion from load balancers, in one patch, if nothing has changed", () => {
    const annotations = { "zonewise.dev/cordoned-by": "shadow-a", "zonewise.dev/excluded-by": "shadow-a" };
    const [upkeep] = upkeepOf([node("a", { cordonedBy: "shadow-a", annotations })]);
    assert.deepEqual(upkeep && "patch" in upkeep && upkeep.patch, {
      metadata: {
        resourceVersion: "1",
        labels: { "node.kubernetes.io/exclude-from-external-load-balancers": null },
        annotations: { "zonewise.dev/cordoned-by": null, "zonewise.dev/excluded-by": null },
      },
      spec: { unschedulable: null },
    });
  });
});

describe("autoscalers", () => {
  const CA = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
  const KARPENTER = "karpenter.sh/do-not-disrupt";
  const MARK = "zonewise.dev/protected-by";
  const patch = (one: UpdateNode, wanted: boolean) => {
    const [upkeep] = upkeepOf([one], { active: wanted ? new Map([["a", true]]) : new Map() });
    return upkeep && "patch" in upkeep ? upkeep.patch.metadata.annotations : undefined;
  };
  it("are kept away from an active node", () =>
    assert.deepEqual(patch(node("a"), true), { [CA]: "true", [KARPENTER]: "true", [MARK]: `${CA},${KARPENTER}` }));
  it("are let near again", () =>
    assert.deepEqual(patch(node("a", { protectedBy: `${CA},${KARPENTER}` }), false), {
      [CA]: null,
      [KARPENTER]: null,
      [MARK]: null,
    }));
  it("are kept off by a person's annotation, which stays", () => {
    assert.deepEqual(patch(node("a", { annotations: { [CA]: "true" } }), true), {
      [KARPENTER]: "true",
      [MARK]: KARPENTER,
    });
    assert.deepEqual(patch(node("a", { annotations: { [CA]: "true", [KARPENTER]: "true" } }), true), undefined);
    assert.deepEqual(patch(node("a", { protectedBy: KARPENTER }), false), { [KARPENTER]: null, [MARK]: null });
  });
  it("are not mentioned on other nodes", () => assert.equal(patch(node("a"), false), undefined));
});
