import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type MarkedNode, markNode, type NodePatch, unmarkNode } from "../../../reconciler/nodes/node-marks.ts";
import { CORDONED_BY, EXCLUDED_BY, LB_LABEL } from "../../../reconciler/nodes/shadow.ts";

const bare: MarkedNode = { metadata: { name: "node-1", resourceVersion: "7" }, spec: {} };
const ours = { shadowUid: "s-1", exclude: true };

/** What a merge patch makes of the node. */
function apply(node: MarkedNode, patch: NodePatch | undefined): MarkedNode {
  const merge = (into: object | undefined, from: object | undefined): object =>
    Object.fromEntries(Object.entries({ ...into, ...from }).filter(([, value]) => value !== null));
  const { annotations, labels } = patch?.metadata ?? {};
  return {
    metadata: {
      ...node.metadata,
      annotations: merge(node.metadata?.annotations, annotations) as Record<string, string>,
      labels: merge(node.metadata?.labels, labels) as Record<string, string>,
    },
    spec: merge(node.spec, patch?.spec),
  };
}

describe("a node's cordon and its exclusion from load balancers", () => {
  it("are one patch with the marks that they are ours, bound to the version that was read", () => {
    assert.deepEqual(markNode(bare, ours), {
      metadata: {
        resourceVersion: "7",
        annotations: { [CORDONED_BY]: "s-1", [EXCLUDED_BY]: "s-1" },
        labels: { [LB_LABEL]: "True" },
      },
      spec: { unschedulable: true },
    });
    assert.deepEqual(unmarkNode(apply(bare, markNode(bare, ours))), {
      metadata: {
        resourceVersion: "7",
        annotations: { [CORDONED_BY]: null, [EXCLUDED_BY]: null },
        labels: { [LB_LABEL]: null },
      },
      spec: { unschedulable: null },
    });
  });

  it("of the exclusion alone leave the cordon", () => {
    const marked = apply(bare, markNode(bare, ours));
    const left = apply(marked, unmarkNode(marked, "exclusion"));
    assert.equal(left.spec?.unschedulable, true);
    assert.deepEqual(Object.keys(left.metadata?.annotations ?? {}), [CORDONED_BY]);
  });

  it("are set again after a person has undone the cordon meanwhile", () => {
    const marked = apply(bare, markNode(bare, ours));
    const undone = apply(marked, { metadata: { resourceVersion: "7" }, spec: { unschedulable: null } });
    assert.equal(apply(undone, markNode(undone, ours)).spec?.unschedulable, true);
  });

  it("leave a node as they found it, whatever a person had set before", () => {
    const human = fc.record({
      cordoned: fc.boolean(),
      excluded: fc.boolean(),
      exclude: fc.boolean(),
      twice: fc.boolean(),
    });
    fc.assert(
      fc.property(human, ({ cordoned, excluded, exclude, twice }) => {
        const before = apply(bare, {
          metadata: {
            resourceVersion: "7",
            annotations: { a: "b" },
            labels: { c: "d", ...(excluded && { [LB_LABEL]: "x" }) },
          },
          ...(cordoned && { spec: { unschedulable: true } }),
        });
        let node = apply(before, markNode(before, { shadowUid: "s-1", exclude }));
        assert.equal(node.spec?.unschedulable, true);
        if (twice) {
          assert.equal(markNode(node, { shadowUid: "s-2", exclude }), undefined);
          node = apply(node, undefined);
        }
        assert.deepEqual(apply(node, unmarkNode(node)), before);
      }),
    );
  });
});
