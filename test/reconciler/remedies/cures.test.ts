/** The best cure comes first, by what is known of the pods and their template. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { curePods } from "../../../reconciler/remedies/cures.ts";
import { remedyFor } from "../../../reconciler/remedies/rules.ts";
import { worldOf } from "../../builders/groups.ts";
import { PREVIOUS, traitsOf, type ZoneScene } from "../../builders/zones.ts";
import { zonesOf } from "../../cli/decide/worlds.ts";

const DELETE = "delete the pod; its StatefulSet recreates it:\nkubectl -n test delete pod ingester-zone-a-0";
const DESCRIBE = "kubectl -n test describe pod ingester-zone-a-0";
const LOOK = `look:\n${DESCRIBE}`;
const LOOK_AT_BOTH = `${LOOK} ingester-zone-b-0`;
const UNDO = "undo the rollout in the zones under way:\nzonewise -n test undo ingester";
const FIX = "fix the template:\nkubectl -n test edit statefulset ingester-zone-a";
const FIX_BOTH = `${FIX} ingester-zone-b`;
const WAIT = "wait for the pods";
const UNTIL = "wait for ingester-zone-a-0; if it does not become ready,";

/** Of zones a and b, and the pods that block. */
const CASES: readonly (readonly [
  what: string,
  zones: readonly [ZoneScene, ZoneScene],
  blocking: string,
  cures: readonly string[],
])[] = [
  ["one broken pod of a zone that has finished: the pod goes", ["nxnn", "nnn"], "a-0", [DELETE, LOOK]],
  [
    "a broken pod beside a ready one of the same new template: the pod goes",
    [{ ...traitsOf("nxnn"), currentRevision: PREVIOUS }, "nnn"],
    "a-0",
    [DELETE, LOOK],
  ],
  [
    "the first pod of a new template: the template is at fault, and undo names the group",
    ["nxoo", "nnn"],
    "a-0",
    [UNDO, FIX_BOTH, LOOK],
  ],
  [
    "the first pods of a new template in two zones: both zones have it",
    ["nxoo", "nxoo"],
    "a-0 b-0",
    [UNDO, FIX_BOTH, LOOK_AT_BOTH],
  ],
  [
    "the only pod of a zone that has finished, while another zone is well with the same images: the pod goes",
    ["nx", "nnn"],
    "a-0",
    [DELETE, LOOK],
  ],
  [
    "the first template of a new group, with which no pod was ever ready: it is at fault, and nothing is to undo",
    ["nx", "nx"],
    "a-0",
    [FIX, LOOK],
  ],
  [
    "a broken pod of an earlier template: the rollout replaces it",
    ["oxoo", "nnn"],
    "a-0",
    ["wait: ingester-zone-a-0 has an earlier template and does not serve, so it is replaced next", LOOK],
  ],
  [
    "a pod that fits on no node: room is made",
    [{ pods: { 0: { broken: "Unschedulable" } } }, "nnn"],
    "a-0",
    [`no node has room for ingester-zone-a-0, or a volume is missing; see why:\n${DESCRIBE}`],
  ],
  [
    "a pod that starts, of a template that is well elsewhere: it may go",
    ["n!nn", "nnn"],
    "a-0",
    [`${UNTIL} delete it, and its StatefulSet recreates it:\nkubectl -n test delete pod ingester-zone-a-0`, LOOK],
  ],
  ["pods of two zones that start: none is deleted", ["n!nn", "n!nn"], "a-0 b-0", [WAIT, LOOK_AT_BOTH]],
  ["a pod that starts beside another zone that is broken: it is not deleted", ["n!nn", "nxnn"], "a-0", [WAIT, LOOK]],
  [
    "the first pod of a new template that starts: the template may be at fault",
    ["n!oo", "nnn"],
    "a-0",
    [`${UNTIL} ${UNDO}`, FIX_BOTH, LOOK],
  ],
  ["a pod of an earlier template that recovers: it is not touched", ["o!oo", "nnn"], "a-0", [WAIT, LOOK]],
  [
    "a pod that does not go: what holds it",
    ["n-nn", "nnn"],
    "a-0",
    [
      "wait until ingester-zone-a-0 is gone; if that takes long, see which finalizer or lost node keeps it:\nkubectl -n test get pod ingester-zone-a-0 -o yaml",
      LOOK,
    ],
  ],
  ["a pod of which a container works: it is not touched", ["n~nn", "nnn"], "a-0", [WAIT, LOOK]],
];

describe("zonewise explain proposes first for", () => {
  for (const [what, scenes, blocking, cures] of CASES)
    it(what, () => {
      const { zones } = worldOf(zonesOf(...scenes.map(traitsOf)));
      const pods = blocking.split(" ").map((name) => ({ kind: "Pod", name: `ingester-zone-${name}` }));
      const objects = [{ kind: "StatefulSet", name: "ingester-zone-a" }, ...pods];
      assert.equal(
        curePods({ namespace: "test", group: "ingester", zones, objects, message: "" }),
        cures.join("\nor "),
      );
    });

  it("pods that their controller does not make: the quota", () => {
    const { zones } = worldOf(zonesOf({}, {}));
    const short = zones.map((zone, i) => (i === 0 ? { ...zone, pods: zone.pods.slice(1) } : zone));
    const objects = [{ kind: "StatefulSet", name: "ingester-zone-a" }];
    assert.equal(
      curePods({ namespace: "test", group: "ingester", zones: short, objects, message: "" }),
      "ingester-zone-a has 2 of 3 pods; see why:\nkubectl -n test describe statefulset ingester-zone-a\nor if a quota is full, free it:\nkubectl -n test describe resourcequota\nor look:\nkubectl -n test get pods",
    );
  });
});

describe("the cure of several budgets", () => {
  const budget = (name: string, matchLabels: Record<string, string>) => ({
    ref: { kind: "ZoneAwarePodDisruptionBudget", namespace: "test", name } as never,
    matchLabels,
  });
  const cureOf = (...budgets: readonly ReturnType<typeof budget>[]): string =>
    remedyFor("SeveralBudgets", {
      namespace: "test",
      message: "",
      group: "ingester",
      zones: [],
      budgets,
      objects: ["first", "second"].map((name) => ({ kind: "ZoneAwarePodDisruptionBudget", name })),
    });
  const WIDE = budget("second", { tier: "x" });

  it("deletes the one that selects nothing beside what the other does", () =>
    assert.equal(
      cureOf(budget("first", { tier: "x", app: "db" }), WIDE),
      "keep one, such as second:\nkubectl -n test delete zpdb first",
    ));

  it("deletes none that may protect another group", () => {
    const edit = "let one select the pod:\nkubectl -n test edit zpdb second";
    assert.equal(cureOf(budget("first", { app: "db" }), WIDE), edit);
    assert.equal(cureOf(WIDE), edit);
  });
});

it("names no leader that follows the zone", () => {
  const zones = zonesOf(
    { annotations: { "grafana.com/rollout-downscale-leader": "gone" } },
    { annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-a" } },
  );
  const objects = [{ kind: "StatefulSet", name: "ingester-zone-a" }];
  const world = { ...worldOf(zones), message: "", objects };
  assert.match(remedyFor("LeaderNotFound", { ...world, all: zones }), /^if it should follow no zone:\n/);
  assert.match(
    remedyFor("LeaderNotFound", world),
    /^see where it is:\nkubectl .* get statefulset gone --show-labels\nor if/,
  );
});

it("a window that cannot be read is corrected in all zones that have it", () => {
  const annotations = { "zonewise.dev/rollout-window": "at night" };
  const zones = zonesOf({ annotations }, { annotations: {} }, { annotations });
  const context = { ...worldOf(zones), message: "", objects: [{ kind: "StatefulSet", name: "ingester-zone-a" }] };
  assert.equal(
    remedyFor("WindowInvalid", context),
    "correct the annotation that the message names:\nkubectl -n test edit statefulset ingester-zone-a ingester-zone-c",
  );
});

it("a group without any StatefulSet gets those that its pods name", () => {
  const objects = ["ingester-zone-a", "ingester-zone-b"].map((name) => ({ kind: "StatefulSet", name }));
  assert.match(
    remedyFor("ZoneOrphaned", { ...worldOf([]), message: "", objects }),
    /^create StatefulSet ingester-zone-a ingester-zone-b again as it was;/,
  );
});
