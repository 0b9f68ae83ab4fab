/** The oracle of stability against worlds that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { type Kind, make, stored, type Traits } from "../../builders/objects.ts";
import { drawFrom } from "../draw.ts";
import { BUDGET, BUDGETS, GROUP, NAMESPACE } from "../names.ts";
import { drawShape, type Shape, TEMPLATES } from "../shape.ts";
import { findLeasesOfTheDead, findUnsettled, isUnrest } from "./stability.ts";

const [A, B] = ["ingester-zone-a", "ingester-zone-b"];
const SHAPE: Shape = {
  ...drawShape(drawFrom(1)),
  zones: [A, B],
  followers: false,
  mirrored: undefined,
  gate: undefined,
  phased: undefined,
  nodes: undefined,
  certificate: undefined,
};
const GROUPS = "rolloutgroups.zonewise.dev";
interface Group {
  readonly phase?: string;
  readonly ready?: "True" | "False";
  readonly zones?: readonly object[];
  readonly holds?: readonly object[];
}
const NOW = Date.parse("2026-01-01T01:00:00Z");

const object = (kind: Kind, name: string, traits: Traits = {}): KubeObject =>
  stored(make(kind, name, { namespace: NAMESPACE, ...traits }));
const zone = (name: string, replicas = 2, revision = "new"): KubeObject =>
  object("StatefulSet", name, {
    metadata: { generation: 1 },
    spec: { replicas },
    status: { updateRevision: "new", currentRevision: revision },
  });
const pod = (name: string, { ready = true, revision = "new" } = {}): KubeObject =>
  object("Pod", name, {
    labels: { name: name.replace(/-\d+$/, ""), "controller-revision-hash": revision },
    status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
  });
const lease = (holderIdentity: string, renewTime = "2026-01-01T00:59:55Z"): KubeObject =>
  object("Lease", "lease", { spec: { holderIdentity, renewTime, leaseDurationSeconds: 15 } });

const row = (name: string, changed: object = {}): object => ({
  name,
  replicas: 2,
  pods: 2,
  updated: 2,
  ready: 2,
  currentRevision: "new",
  updateRevision: "new",
  generation: 1,
  ...changed,
});
function group({ phase = "Ready", ready = "True", zones = [row(A), row(B)], ...rest }: Group = {}): KubeObject {
  return object("RolloutGroup", GROUP, {
    status: { group: GROUP, phase, zones, conditions: [{ type: "Ready", status: ready }], ...rest },
  });
}

type Objects = Readonly<Record<string, readonly KubeObject[]>>;
const SETTLED: Objects = {
  "statefulsets.apps": [zone(A), zone(B)],
  pods: [A, B].flatMap((name) => [pod(`${name}-0`), pod(`${name}-1`)]),
  [BUDGETS]: [object("ZoneAwarePodDisruptionBudget", BUDGET, { status: { disruptedPods: {} } })],
  [GROUPS]: [group()],
};
const storeOf = (objects: Objects) => ({
  list: (resource: string) => [...(objects[resource] ?? [])],
  get: (resource: string, _: string | undefined, name: string) =>
    objects[resource]?.find(({ metadata }) => metadata.name === name),
});
/** The settled world, with these objects in the place of those of their names. */
function look(changes: Objects = {}, shape: Partial<Shape> = {}, prepared: readonly string[] = [], leaving = prepared) {
  const changed = Object.entries(changes).map(([resource, objects]) => {
    const others = (SETTLED[resource] ?? []).filter(
      (one) => !objects.some(({ metadata }) => metadata.name === one.metadata.name),
    );
    return [resource, [...others, ...objects]] as const;
  });
  const store = storeOf({ ...SETTLED, ...Object.fromEntries(changed) }) as unknown as Parameters<
    typeof findUnsettled
  >[0]["store"];
  const world = {
    store,
    prepared: new Set(prepared),
    leaving: new Map(leaving.map((uid) => [uid, 0])),
    shown: () => [],
    fleet: undefined,
  };
  return findUnsettled(world, { ...SHAPE, ...shape }, NOW).join("; ");
}

const template = (replicas: number, shown: number): Objects => ({
  [TEMPLATES]: [object("ReplicaTemplate", GROUP, { spec: { replicas }, status: { replicas: shown } })],
});
const mirrored = { mirrored: { delayMs: 0 } };

describe("the oracle of stability", () => {
  for (const [name, found, expected] of [
    ["a settled world", look(), undefined],
    ["a pod that is missing", look({ "statefulsets.apps": [zone(A, 3)] }), /zone-a has 2 pods instead of 3/],
    ["a pod that is not ready", look({ pods: [pod(`${A}-0`, { ready: false })] }), /zone-a-0 is not ready/],
    ["a pod of an old template", look({ pods: [pod(`${A}-0`, { revision: "old" })] }), /zone-a-0 is outdated/],
    ["a zone that is not recorded", look({ "statefulsets.apps": [zone(A, 2, "old")] }), /old currentRevision/],
    ["a pod that is left prepared", look({}, {}, [`${A}-1`], []), /zone-a-1 was left prepared/],
    ["a pod that is left with its notice", look({}, {}, [], [`${A}-1`]), /zone-a-1 was left prepared/],
    ["a prepared pod that has gone", look({}, {}, ["gone"]), undefined],
    [
      "a reservation that is left",
      look({
        [BUDGETS]: [object("ZoneAwarePodDisruptionBudget", BUDGET, { status: { disruptedPods: { [`${A}-0`]: {} } } })],
      }),
      /reservation of ingester-zone-a-0 is left/,
    ],
    ["followers like their leader", look({}, { followers: true }), undefined],
    [
      "a follower unlike its leader",
      look({ "statefulsets.apps": [zone(B, 1)] }, { followers: true }),
      /zone-b has 1 replicas, and ingester-zone-a, which it follows, 2/,
    ],
    ["zones like their template", look(template(2, 2), mirrored), undefined],
    ["a zone unlike its template", look(template(3, 3), mirrored), /zone-a has 2 replicas instead of the 3/],
    ["a group without a status", look({ [GROUPS]: [object("RolloutGroup", GROUP)] }), /no RolloutGroup tells of/],
    [
      "a settled group whose status waits",
      look({ [GROUPS]: [group({ phase: "Waiting", ready: "False" })] }),
      /the RolloutGroup is Waiting, not Ready/,
    ],
    ["a phase that its condition denies", look({ [GROUPS]: [group({ phase: "Blocked" })] }), /condition Ready says/],
    ["a Ready group that is blocked", look({ [GROUPS]: [group({ holds: [{}] })] }), /tells of what is left/],
    ["a status without a zone", look({ [GROUPS]: [group({ zones: [row(A)] })] }), /of 1 zones instead of 2/],
    [
      "a status with an older number of pods",
      look({ [GROUPS]: [group({ zones: [row(A), row(B, { ready: 1 })] })] }),
      /zone-b ready 1, not 2/,
    ],
    ["a template that does not know its zones", look(template(2, 1), mirrored), /status of the template is not 2/],
  ] as const)
    it(`${expected ? "condemns" : "accepts"} ${name}`, () => assert.match(found, expected ?? /^$/));

  for (const [name, held, expected] of [
    ["a Lease of a process that runs", lease("reconciler-2_x"), undefined],
    ["a free Lease", lease(""), undefined],
    ["a Lease that has expired", lease("reconciler-1_x", "2026-01-01T00:59:40Z"), undefined],
    ["a Lease of the dead", lease("reconciler-1_x"), /left to reconciler-1_x/],
    ["a Lease of a request that is over", lease("4711"), /left to 4711/],
  ] as const)
    it(`${expected ? "condemns" : "accepts"} ${name}`, () => {
      const store = storeOf({ "leases.coordination.k8s.io": [held] });
      assert.match(findLeasesOfTheDead(store, ["reconciler-2"], NOW).join("; "), expected ?? /^$/);
    });

  for (const [resource, expected] of [
    ["pods", true],
    ["statefulsets.apps", true],
    [BUDGETS, true],
    ["leases.coordination.k8s.io", false],
    ["events", false],
  ] as const)
    it(`${expected ? "condemns" : "accepts"} a write to ${resource} at rest`, () => {
      const event: StoreEvent = { type: "MODIFIED", resource, object: object("ConfigMap", "any") };
      assert.equal(isUnrest(event, SHAPE), expected);
    });
});
