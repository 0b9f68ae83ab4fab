/** The lists that find the pods of a group's zones, and to whom a pod that they find belongs. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import { gatherZonePods, planLists } from "../../../reconciler/snapshot/gather.ts";
import { group } from "../../builders/groups.ts";
import { labelSelector } from "../../emulator/selectors.ts";
import { podObject, TOO_LONG, type ZoneTraits } from "../../builders/zones.ts";

const OF_GROUP = { "rollout-group": "ingester" };

describe("the pods of a group", () => {
  const CASES: readonly [what: string, zones: ZoneTraits[], lists: string[]][] = [
    [
      "in one, if all select by its label",
      [{ selected: OF_GROUP }, { selected: OF_GROUP }],
      ["rollout-group=ingester a b"],
    ],
    ["in one a zone, if none does", [{}, {}], ["name=ingester-zone-a a", "name=ingester-zone-b b"]],
    [
      "in one more for each zone that does not",
      [{ selected: OF_GROUP }, {}, { selected: { "rollout-group": "other" } }],
      ["rollout-group=ingester a", "name=ingester-zone-b b", "name=ingester-zone-c,rollout-group=other c"],
    ],
  ];
  for (const [what, traits, lists] of CASES)
    it(`are listed ${what}`, () => {
      const { zones } = group(...traits);
      const told = planLists(zones).map((list) =>
        [list.labelSelector, ...list.zones.map(({ name }) => name.slice(-1))].join(" "),
      );
      assert.deepEqual(told, lists);
    });

  it("are listed by its label too if only templates have it: it finds what StatefulSets have left behind", () => {
    const zones = group({}, {}).zones.map((zone) => ({ ...zone, podLabels: { ...zone.podLabels, ...OF_GROUP } }));
    assert.deepEqual(
      planLists(zones).map(({ labelSelector, isOfGroup = false }) => [labelSelector, isOfGroup]),
      [
        ["rollout-group=ingester", true],
        ["name=ingester-zone-a", false],
        ["name=ingester-zone-b", false],
      ],
    );
  });
});

it("a pod belongs to the StatefulSet that controls it, if its selector matches", async () => {
  const selected = { ...OF_GROUP, tier: "x" };
  const { zones } = group({ selected }, { selected });
  const labelled = (pod: PodObject, labels: Record<string, string>): PodObject => ({
    ...pod,
    metadata: { ...pod.metadata, labels: { ...pod.metadata?.labels, ...labels } },
  });
  const pods = [
    labelled(podObject("ingester-zone-a", 0), selected),
    labelled(podObject("ingester-zone-b", 0), { ...selected, tier: "y" }),
    labelled(podObject("another", 0), { ...selected, name: "ingester-zone-b" }),
    labelled(podObject("ingester-zone-b", 1), selected),
    // It has been selected by labels that are not kept.
    labelled(podObject("ingester-zone-a", 1), { ...TOO_LONG, ...selected }),
  ];
  const cluster = {
    async *list(_: unknown, query: { readonly labelSelector?: string }) {
      const matches = labelSelector(query.labelSelector ?? "");
      yield { items: pods.filter(({ metadata }) => matches(metadata?.labels ?? {})), resourceVersion: "1" };
    },
  } as unknown as Cluster;
  const found = await gatherZonePods(zones, { cluster });
  assert.deepEqual(
    found.map((zone) => zone.pods.map(({ name }) => name)),
    [["ingester-zone-a-0", "ingester-zone-a-1"], ["ingester-zone-b-1"]],
  );
});
