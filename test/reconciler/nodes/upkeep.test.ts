import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { UpdateNode } from "../../../reconciler/nodes/node.ts";
import { planUpkeep, type UpkeepSnapshot } from "../../../reconciler/nodes/upkeep.ts";
import { busyNode, node, NOW, shadow } from "./fixture.ts";

const NOBODY: Omit<UpkeepSnapshot, "nodes"> = { now: NOW, active: new Map(), released: new Set(), governed: new Set() };

const actions = (one: UpdateNode, rest: Partial<UpkeepSnapshot> = {}): string[] =>
  planUpkeep({ ...NOBODY, nodes: [one], governed: new Set([one.name]), ...rest }).map(({ action }) => action);
const active = new Map([["a", false]]);
const rebooting = { rebooting: { boot_id: "boot-1", at: "" } };
const cordoned = { cordonedBy: "shadow-a", annotations: { "zonewise.dev/cordoned-by": "shadow-a" } };

describe("shadows", () => {
  for (const [title, one, expected] of [
    ["are created for managed nodes", node("a", { shadow: undefined }), ["createShadow"]],
    ["are not created for other nodes", node("a", { managed: false, shadow: undefined }), []],
    ["are not created for nodes that are being deleted", node("a", { terminating: true, shadow: undefined }), []],
    ["stay with managed nodes", node("a"), []],
    ["go with the label", node("a", { managed: false }), ["deleteShadow"]],
    [
      "go with the label, in whatever state",
      busyNode("a", "RebootedIntoUpdate", "ErrorReset", { node: { managed: false } }),
      ["deleteShadow"],
    ],
    ["stay until the node is uncordoned", node("a", { managed: false, ...cordoned }), ["uncordon"]],
    [
      "stay until the node is back from its reboot",
      busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate", { node: { managed: false }, status: rebooting }),
      [],
    ],
    ["are deleted once", node("a", { managed: false, shadow: { ...shadow("a"), terminating: true } }), []],
  ] as const)
    it(title, () => assert.deepEqual(actions(one), expected));

  it("stay while the node is active", () => assert.deepEqual(actions(node("a", { managed: false }), { active }), []));
});

describe("a cordon", () => {
  const busy = (reported: "StagedAndPerformedUpdate" | "MonitoringUpdate", overrides = {}) =>
    busyNode("a", "RebootedIntoUpdate", reported, { node: cordoned, ...overrides });
  for (const [title, one, expected, rest] of [
    ["of a person is left alone", node("a", { unschedulable: true }), [], {}],
    ["of ours is undone once Idle is wanted", node("a", cordoned), ["uncordon"], {}],
    [
      "of ours is undone once Idle is wanted, also if the agent is silent",
      busyNode("a", "Idle", "StagedAndPerformedUpdate", { node: cordoned }),
      ["uncordon"],
      { active },
    ],
    ["of ours stays for the drain", busy("StagedAndPerformedUpdate"), [], { active }],
    ["of ours stays on a node that is not Ready", node("a", { ...cordoned, ready: false }), [], {}],
    [
      "of ours stays while the node is about to reboot",
      busyNode("a", "Idle", "StagedAndPerformedUpdate", { node: cordoned, status: rebooting }),
      [],
      { active },
    ],
    [
      "of ours is undone on such a node once a person has released it",
      busyNode("a", "Idle", "StagedAndPerformedUpdate", { node: cordoned, status: rebooting }),
      ["uncordon"],
      { released: new Set(["a"]) },
    ],
    [
      "of ours is undone in a new boot",
      busyNode("a", "Idle", "StagedAndPerformedUpdate", { node: { ...cordoned, bootId: "boot-2" }, status: rebooting }),
      ["uncordon"],
      {},
    ],
    [
      "of ours is undone when its shadow is gone",
      node("a", { managed: false, shadow: undefined, ...cordoned }),
      ["uncordon"],
      {},
    ],
    [
      "of ours is undone when its shadow is another one",
      node("a", { ...cordoned, cordonedBy: "earlier" }),
      ["uncordon"],
      {},
    ],
    [
      "of ours is undone on a node that is not managed any more",
      busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate", { node: { ...cordoned, managed: false } }),
      ["uncordon"],
      {},
    ],
  ] as const)
    it(title, () => assert.deepEqual(actions(one, rest), expected));

  it("is undone together with our exclusion from load balancers, in one patch, if nothing has changed", () => {
    const annotations = { "zonewise.dev/cordoned-by": "shadow-a", "zonewise.dev/excluded-by": "shadow-a" };
    const [upkeep] = planUpkeep({ ...NOBODY, nodes: [node("a", { ...cordoned, annotations })] });
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

describe("a node without a policy", () => {
  for (const [title, one, expected] of [
    [
      "goes back to Idle, also in the middle of its drain",
      busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate"),
      ["resetShadow"],
    ],
    ["stays Idle", node("a"), []],
    [
      "is put right by its label if it has lost that as well",
      busyNode("a", "MonitoringUpdate", "Idle", { node: { managed: false } }),
      ["deleteShadow"],
    ],
  ] as const)
    it(title, () => assert.deepEqual(actions(one, { governed: new Set() }), expected));
});

describe("autoscalers", () => {
  const CA = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
  const KARPENTER = "karpenter.sh/do-not-disrupt";
  const MARK = "zonewise.dev/protected-by";
  const patch = (one: UpdateNode, wanted: boolean) => {
    const [upkeep] = planUpkeep({ ...NOBODY, nodes: [one], active: wanted ? new Map([["a", true]]) : new Map() });
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
