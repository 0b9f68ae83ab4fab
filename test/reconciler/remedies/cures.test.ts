/** The best cure comes first, by what is known of the pods and their template. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { curePods } from "../../../reconciler/remedies/cures.ts";
import { remedyFor } from "../../../reconciler/remedies/rules.ts";
import { LAST, PREVIOUS, type ZoneTraits } from "../builders.ts";
import { worldOf } from "../plan/builders.ts";
import { zonesOf } from "../../cli/decide/worlds.ts";

const CRASHING = { ready: false, working: false, broken: "CrashLoopBackOff" };
const STARTING = { ready: false, working: false };
const DELETE = "delete the pod; its StatefulSet recreates it:\nkubectl -n test delete pod ingester-zone-a-0";
const LOOK = "look:\nkubectl -n test describe pod ingester-zone-a-0";

interface Case {
  readonly what: string;
  readonly zone: ZoneTraits;
  /** The other zone; whole by default. */
  readonly other?: ZoneTraits;
  /** Pods of both zones block. */
  readonly several?: true;
  readonly cure: string;
}

const CASES: readonly Case[] = [
  {
    what: "one broken pod of a zone that has finished: the pod goes",
    zone: { pods: { 0: { ...CRASHING, revision: LAST } } },
    cure: `${DELETE}\nor ${LOOK}`,
  },
  {
    what: "a broken pod beside a ready one of the same new template: the pod goes",
    zone: { at: LAST, currentRevision: PREVIOUS, updateRevision: LAST, pods: { 0: CRASHING } },
    cure: `${DELETE}\nor ${LOOK}`,
  },
  {
    what: "the first pod of a new template: the template is at fault, and undo names the group",
    zone: { at: PREVIOUS, updateRevision: LAST, pods: { 0: { ...CRASHING, revision: LAST } } },
    cure: `undo the rollout in the zones under way:\nzonewise -n test undo ingester\nor fix the template:\nkubectl -n test edit statefulset ingester-zone-a ingester-zone-b\nor ${LOOK}`,
  },
  {
    what: "the first pods of a new template in two zones: both zones have it",
    zone: { at: PREVIOUS, updateRevision: LAST, pods: { 0: { ...CRASHING, revision: LAST } } },
    other: { at: PREVIOUS, updateRevision: LAST, pods: { 0: { ...CRASHING, revision: LAST } } },
    several: true,
    cure: "undo the rollout in the zones under way:\nzonewise -n test undo ingester\nor fix the template:\nkubectl -n test edit statefulset ingester-zone-a ingester-zone-b\nor look:\nkubectl -n test describe pod ingester-zone-a-0 ingester-zone-b-0",
  },
  {
    what: "the only pod of a zone that has finished, while another zone is well with the same images: the pod goes",
    zone: { replicas: 1, pods: { 0: CRASHING } },
    cure: `${DELETE}\nor ${LOOK}`,
  },
  {
    what: "the first template of a new group, with which no pod was ever ready: it is at fault, and nothing is to undo",
    zone: { replicas: 1, pods: { 0: CRASHING } },
    other: { replicas: 1, pods: { 0: CRASHING } },
    cure: `fix the template:\nkubectl -n test edit statefulset ingester-zone-a\nor ${LOOK}`,
  },
  {
    what: "a broken pod of an earlier template: the rollout replaces it",
    zone: { at: PREVIOUS, updateRevision: LAST, pods: { 0: CRASHING } },
    cure: `wait: ingester-zone-a-0 has an earlier template and does not serve, so it is replaced next\nor ${LOOK}`,
  },
  {
    what: "a pod that fits on no node: room is made",
    zone: { pods: { 0: { ...CRASHING, broken: "Unschedulable" } } },
    cure: "no node has room for ingester-zone-a-0, or a volume is missing; see why:\nkubectl -n test describe pod ingester-zone-a-0",
  },
  {
    what: "a pod that starts, of a template that is well elsewhere: it may go",
    zone: { pods: { 0: STARTING } },
    cure: `wait for ingester-zone-a-0; if it does not become ready, delete it, and its StatefulSet recreates it:\nkubectl -n test delete pod ingester-zone-a-0\nor ${LOOK}`,
  },
  {
    what: "pods of two zones that start: none is deleted",
    zone: { pods: { 0: STARTING } },
    other: { pods: { 0: STARTING } },
    several: true,
    cure: `wait for the pods\nor look:\nkubectl -n test describe pod ingester-zone-a-0 ingester-zone-b-0`,
  },
  {
    what: "a pod that starts beside another zone that is broken: it is not deleted",
    zone: { pods: { 0: STARTING } },
    other: { pods: { 0: CRASHING } },
    cure: `wait for the pods\nor ${LOOK}`,
  },
  {
    what: "the first pod of a new template that starts: the template may be at fault",
    zone: { at: PREVIOUS, updateRevision: LAST, pods: { 0: { ...STARTING, revision: LAST } } },
    cure: `wait for ingester-zone-a-0; if it does not become ready, undo the rollout in the zones under way:\nzonewise -n test undo ingester\nor fix the template:\nkubectl -n test edit statefulset ingester-zone-a ingester-zone-b\nor ${LOOK}`,
  },
  {
    what: "a pod of an earlier template that recovers: it is not touched",
    zone: { at: PREVIOUS, updateRevision: LAST, pods: { 0: STARTING } },
    cure: `wait for the pods\nor ${LOOK}`,
  },
  {
    what: "a pod that does not go: what holds it",
    zone: { pods: { 0: { ready: false, working: false, terminating: true } } },
    cure: `wait until ingester-zone-a-0 is gone; if that takes long, see which finalizer or lost node keeps it:\nkubectl -n test get pod ingester-zone-a-0 -o yaml\nor ${LOOK}`,
  },
  {
    what: "a pod of which a container works: it is not touched",
    zone: { pods: { 0: { ...CRASHING, working: true } } },
    cure: `wait for the pods\nor ${LOOK}`,
  },
];

describe("zonewise explain proposes first for", () => {
  for (const { what, zone, other = {}, several, cure } of CASES)
    it(what, () => {
      const { zones } = worldOf(zonesOf(zone, other));
      const objects = [
        { kind: "StatefulSet", name: "ingester-zone-a" },
        { kind: "Pod", name: "ingester-zone-a-0" },
        ...(several ? [{ kind: "Pod", name: "ingester-zone-b-0" }] : []),
      ];
      assert.equal(curePods({ namespace: "test", group: "ingester", zones, objects, message: "" }), cure);
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
