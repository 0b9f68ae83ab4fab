import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { byName, byOrdinal, moveToFront } from "../../../reconciler/model/order.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { selectorText } from "../../../reconciler/model/label-selector.ts";
import { missingPods } from "../../../reconciler/model/readiness.ts";
import { nameImages, readZone, withPods } from "../../../reconciler/model/zone.ts";
import { zone as zoneOf } from "../../builders/groups.ts";
import { podObject, podObjects, type PodTraits, statefulSetObject } from "../../builders/zones.ts";

const named = (...names: readonly string[]) => names.map((name) => ({ name }));
const names = (items: readonly { readonly name: string }[]) => items.map(({ name }) => name);

describe("order", () => {
  it("StatefulSets sort by name", () => {
    assert.deepEqual(names(named("zone-c", "zone-a", "zone-b").toSorted(byName)), ["zone-a", "zone-b", "zone-c"]);
  });

  it("pods sort by their ordinals as numbers", () => {
    const sorted = names(named("i-11", "i-1", "i-20", "i-0", "i-10").toSorted(byOrdinal));
    assert.deepEqual(sorted, ["i-0", "i-1", "i-10", "i-11", "i-20"]);
  });

  it("the names of pods keep their order", () => {
    const zone = withPods(
      readZone(statefulSetObject()),
      [2, 0, 1].map((i) => readPod(podObject("ingester-zone-a", i))),
    );
    assert.deepEqual(names(zone.pods), ["ingester-zone-a-0", "ingester-zone-a-1", "ingester-zone-a-2"]);
  });

  it("moving to the front keeps the order of the rest", () => {
    assert.deepEqual(
      moveToFront([1, 2, 3, 4], (n) => n === 3),
      [3, 1, 2, 4],
    );
  });

  it("an object without a group label is in the group without a name", () => {
    const sets = [
      { metadata: { name: "x", uid: "1" } },
      statefulSetObject({ name: "y" }),
      statefulSetObject({ name: "z" }),
    ];
    const groups = Map.groupBy(
      sets.map((set) => readZone(set)),
      (zone) => zone.group,
    );
    assert.deepEqual(names(groups.get("") ?? []), ["x"]);
    assert.deepEqual(names(groups.get("ingester") ?? []), ["y", "z"]);
  });
});

describe("a zone's pods", () => {
  it("(design: by owner, not by the label `name`): are those it controls, regardless of their labels (design: deviates from 0.7)", () => {
    const zone = readZone(statefulSetObject({ name: "ingester-zone-a" }));
    const mixed = [podObject("ingester-zone-a", 0), podObject("ingester-zone-b", 0)].map(readPod);
    assert.deepEqual(names(withPods(zone, mixed).pods), ["ingester-zone-a-0"]);
  });

  it("are selected by the whole selector", () => {
    const text = selectorText({
      matchLabels: { name: "a", tier: "x" },
      matchExpressions: [
        { key: "zone", operator: "In", values: ["a", "b"] },
        { key: "old", operator: "DoesNotExist" },
        { key: "app", operator: "Exists" },
        { key: "env", operator: "NotIn", values: ["dev"] },
      ],
    });
    assert.equal(text, "name=a,tier=x,zone in (a,b),!old,app,env notin (dev)");
  });
});

describe("the conditions of a pod tell whether it has been Ready since it was created", () => {
  /** Pods start at midnight. "unknown": it may have been Ready in its first seconds. */
  const TABLE: readonly [string, "yes" | "no" | "unknown", PodTraits][] = [
    ["it is ready", "yes", { readyAt: "2026-01-01T00:00:00Z" }],
    ["it turned long after its start", "yes", { ready: false, readyAt: "2026-01-01T00:00:11Z" }],
    [
      "it turned as it started, however often its containers ended",
      "no",
      { ready: false, restarts: 7, readyAt: "2026-01-01T00:00:00Z" },
    ],
    ["it turned in the same report, in the next second", "no", { ready: false, readyAt: "2026-01-01T00:00:01Z" }],
    [
      "it turned by a late first report, or it served for a moment",
      "unknown",
      { ready: false, readyAt: "2026-01-01T00:00:02Z" },
    ],
    ["it turned by a very late first report", "unknown", { ready: false, readyAt: "2026-01-01T00:00:10Z" }],
    ["its condition has no time", "unknown", { ready: false, readyAt: null }],
    [
      "it turned before its start: the clock of its node was set back",
      "unknown",
      { ready: false, readyAt: "2025-12-31T23:05:00Z" },
    ],
  ];
  for (const [name, expected, traits] of TABLE)
    it(`${name}: ${expected}`, () => {
      const answers = { yes: true, no: false, unknown: undefined };
      assert.equal(readPod(podObject("a", 0, traits)).health.served, answers[expected]);
    });
});

describe("the condition Ready of a pod tells since when it has not been ready", () => {
  const CREATED = "2026-01-01T12:00:00Z";
  const TABLE: readonly [string, readyAt: string, createdAt: string | undefined, since: string][] = [
    ["by its time", "2026-01-01T12:30:00Z", CREATED, "2026-01-01T12:30:00Z"],
    ["but not before its creation, whatever the clock of its node says", "2026-01-01T11:05:00Z", CREATED, CREATED],
    ["alone where its creation is not known", "2026-01-01T11:05:00Z", undefined, "2026-01-01T11:05:00Z"],
  ];
  for (const [name, readyAt, createdAt, since] of TABLE)
    it(name, () => {
      const pod = readPod(podObject("a", 0, { ready: false, readyAt, ...(createdAt !== undefined && { createdAt }) }));
      assert.equal(pod.health.since, Date.parse(since));
    });
});

it("how long a pod took to become ready is known while it is", () => {
  const took = (ready: boolean) => readPod(podObject("a", 0, { ready, readyAt: "2026-01-01T00:01:30Z" })).readyAfterMs;
  assert.deepEqual([took(true), took(false)], [90_000, undefined]);
});

it("missing pods are named by the ordinals that the zone wants", () => {
  const traits = { name: "ingester-zone-b", statusReplicas: 5, pods: { 1: null } };
  const zone = readZone(statefulSetObject(traits));
  const pods = podObjects(traits).map(({ metadata }) => ({ name: metadata?.name ?? "" }));
  assert.deepEqual(missingPods(zone, pods, 9), ["ingester-zone-b-1", "ingester-zone-b-3", "ingester-zone-b-4"]);
  assert.deepEqual(missingPods(zone, pods, 2), ["ingester-zone-b-1", "ingester-zone-b-3"]);
  const from = { ...zone, firstOrdinal: 2 };
  assert.deepEqual(missingPods(from, pods, 9), ["ingester-zone-b-3", "ingester-zone-b-4", "ingester-zone-b-5"]);
  assert.deepEqual(missingPods({ ...from, replicas: 2, status: { ...zone.status, replicas: 2 } }, pods, 9), [
    "ingester-zone-b-3",
  ]);
});

it("names the images of each whole revision, but of no template that is not observed", () => {
  const zone = zoneOf();
  const named = (text: string, change: object = {}): string =>
    nameImages(text, [{ ...zone, images: ["app:2", "side:1"], ...change }]);
  const { updateRevision: name } = zone.status;
  assert.equal(named(`updating a-0 to ${name}, now`), `updating a-0 to app:2, side:1 (${name}), now`);
  assert.equal(named(`${name}-x`), `${name}-x`);
  assert.equal(named(`to ${name}`, { observed: false }), `to ${name}`);
  assert.equal(named(`It is ${name}.`), `It is app:2, side:1 (${name}).`);
  for (const odd of ["a(b", "(a+)+$", "$&"])
    assert.equal(named(`to ${odd}`, { status: { ...zone.status, updateRevision: odd } }), `to ${odd}`, "no name");
  assert.equal(named("to", { status: { ...zone.status, updateRevision: "" } }), "to");
});
