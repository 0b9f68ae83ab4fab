/** Kubernetes bounds each label, and not all of them together: what is too long is not kept, and its group is refused. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { selectorText } from "../../../reconciler/model/label-selector.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { decideScaling } from "../../../reconciler/scaling/decide-scaling.ts";
import { startProcess } from "../budget/adapter.ts";
import { objectsOf } from "../../builders/groups.ts";
import { OLD, podObject, statefulSetObject, TOO_LONG } from "../../builders/zones.ts";
import { factsOf } from "../budget/scene.ts";
import { decideNext, readGroup } from "../rollout/adapter.ts";

const KEPT = 16 * 1024;
const sizeOf = (value: unknown): number => JSON.stringify(value).length;
const text = "x".repeat(250 * 1024);
const { spec } = statefulSetObject();
const template = spec?.template ?? assert.fail();

describe("a StatefulSet with more text than is kept", () => {
  const zones = {
    "its labels": statefulSetObject({ labels: TOO_LONG }),
    "the labels of its template": statefulSetObject({ selected: TOO_LONG }),
    "the values of its selector": {
      ...statefulSetObject(),
      spec: { ...spec, selector: { matchExpressions: [{ key: "a", operator: "In", values: [text] }] } },
    },
    "its images": {
      ...statefulSetObject(),
      spec: {
        ...spec,
        template: {
          ...template,
          spec: { containers: Array.from({ length: 100 }, (_, i) => ({ name: `c${i}`, image: `${i}${text}` })) },
        },
      },
    },
    "its Service": { ...statefulSetObject(), spec: { ...spec, serviceName: text } },
  };
  for (const [what, object] of Object.entries(zones))
    it(`keeps none of ${what}, and names the problem`, () => {
      const zone = readZone(object as ReturnType<typeof statefulSetObject>);
      assert.ok(sizeOf(zone) < KEPT, `${sizeOf(zone)}`);
      assert.equal(zone.group, "ingester");
      assert.match(zone.textProblem ?? "", /^its labels, selector, images and Service have \d+ characters, more than /);
      assert.equal(selectorText(zone.selector), "rollout-group,!rollout-group");
    });

  it("has its group held by name, neither rolled out nor scaled", () => {
    const long = objectsOf([
      { ...OLD, name: "a" },
      { name: "b", labels: TOO_LONG },
    ]);
    const decision = decideNext(long);
    assert.ok(decision?.action === "hold");
    assert.equal(decision.reason, "LabelsTooLong");
    assert.match(decision.message, /^b: its labels, .* more than 16384: its group is neither rolled out nor scaled$/);
    const followers = readGroup(long).zones.map((zone) => ({ ...zone, scaling: { ...zone.scaling, leader: "none" } }));
    const snapshot = { zones: followers, tracked: new Map(), now: 0, facts: new Map(), clusterDomain: "x" };
    assert.deepEqual(decideScaling(snapshot), { next: undefined, scalingHolds: [] });
  });

  it("lets no pod of its group go by an eviction or a downscale; pods of other groups go", async () => {
    const facts = factsOf({ zones: { other: { group: "distributor" } } });
    const long = (group: string) => ({
      ...facts,
      statefulSets: facts.statefulSets.map((set) =>
        set.metadata?.labels?.["rollout-group"] === group
          ? { ...set, metadata: { ...set.metadata, labels: { ...set.metadata?.labels, ...TOO_LONG } } }
          : set,
      ),
    });
    const judge = async (group: string): Promise<readonly string[]> => {
      const evicted = await startProcess(long(group)).evict({ pod: "ingester-zone-a-0" });
      const shrunk = await startProcess(long(group)).downscale({ statefulSet: "ingester-zone-a", to: 2 });
      return [evicted.reason, shrunk.reason];
    };
    assert.deepEqual(await judge("ingester"), ["LabelsTooLong", "LabelsTooLong"]);
    assert.deepEqual(await judge("distributor"), ["Allowed", "Allowed"]);
  });
});

describe("a pod with more labels than are kept", () => {
  it("loses all but ours", () => {
    const { metadata, ...pod } = podObject("ingester-zone-a", 0);
    const labels = { ...TOO_LONG, "rollout-group": "ingester" };
    const listed = readPod({ ...pod, metadata: { ...metadata, labels } });
    assert.deepEqual(listed.labels, { "rollout-group": "ingester" });
    assert.match(listed.textProblem ?? "", /^its labels have \d+ characters, more than 16384$/);
  });

  it("is not evicted where there is a budget", async () => {
    const facts = factsOf({});
    const pods = facts.pods.map((pod) => ({
      ...pod,
      metadata: { ...pod.metadata, labels: { ...pod.metadata?.labels, ...TOO_LONG } },
    }));
    const { reason, message } = await startProcess({ ...facts, pods }).evict({ pod: "ingester-zone-a-0" });
    assert.equal(reason, "LabelsTooLong");
    assert.match(message, /^ingester-zone-a-0: its labels have \d+ characters, more than 16384$/);
  });
});
