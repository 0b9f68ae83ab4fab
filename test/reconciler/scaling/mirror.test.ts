import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster } from "../../../infra/cluster.ts";
import { deploy } from "../stage.ts";
import { DELAYED, MIRROR, mirrorStage, NO_WRITE_BACK, type MirrorStage, type MirrorZone, type PodAnswers } from "./mirror-stage.ts";

const mirroring = (replicas: number, more: Record<string, string> = {}): MirrorZone => ({ replicas, annotations: { ...MIRROR, ...more } });
const delayed = (replicas: number, more: Record<string, string> = {}): MirrorZone => mirroring(replicas, { ...DELAYED, ...more });
const force = (replicas: number) => ({ "grafana.com/rollout-force-replicas": String(replicas) });

let on: MirrorStage;
beforeEach(async () => (on = await mirrorStage()));
afterEach(() => on.stage.close());

interface Case {
  readonly zones: readonly MirrorZone[];
  /** What the reference wants, and was told. */
  readonly reference: readonly [spec: number, status: number];
  readonly pods?: PodAnswers;
  readonly requests?: readonly string[];
  readonly patches: readonly string[];
  readonly waits?: readonly string[];
}

const A = "statefulsets ingester-zone-a";
const STATUS = "replicatemplates/status template";
const prepared =
  (minutesAgo: Readonly<Record<number, number>>): PodAnswers =>
  (_method, ordinal) => ({ minutesAgo: minutesAgo[ordinal] ?? 0 });
const postAnswers =
  (answer: ReturnType<PodAnswers>): PodAnswers =>
  (method) =>
    method === "POST" ? answer : {};
const OLD = { minutesAgo: 70 };
const HOLDS_5 = { patches: [`${STATUS} 5`] };

const CASES: Readonly<Record<string, Case>> = {
  "C01 grows, and tells": { zones: [mirroring(2)], reference: [5, 2], patches: [`${A} 5`, `${STATUS} 5`] },
  "C02 grows, and does not tell": { zones: [mirroring(2, NO_WRITE_BACK)], reference: [5, 2], patches: [`${A} 5`] },
  "C03 shrinks, and tells": { zones: [mirroring(3)], reference: [2, 3], patches: [`${A} 2`, `${STATUS} 2`] },
  "C04 shrinks, and does not tell": { zones: [mirroring(3, NO_WRITE_BACK)], reference: [2, 3], patches: [`${A} 2`] },
  "C05 stays, and tells": { zones: [mirroring(3)], reference: [3, 5], patches: [`${STATUS} 3`] },
  "C06 stays, and does not tell": { zones: [mirroring(3, NO_WRITE_BACK)], reference: [3, 5], patches: [] },
  "C07 stays, and has told": { zones: [mirroring(3)], reference: [3, 3], patches: [] },
  // Where the scale is read anew, the second and third zone find that the first has told already.
  "C10 one of four zones changes at a time; one without annotations never": {
    zones: [{ replicas: 1 }, mirroring(5), mirroring(5), mirroring(2)],
    reference: [5, 2],
    patches: [`${STATUS} 5`, "statefulsets ingester-zone-d 5"],
  },
  "C11 a write-back that is false or cannot be read tells nothing": {
    zones: [
      { replicas: 1 },
      mirroring(5, NO_WRITE_BACK),
      mirroring(5, { ...NO_WRITE_BACK, "grafana.com/rollout-mirror-replicas-from-resource-write-back": "bad value" }),
      mirroring(2),
    ],
    reference: [5, 2],
    patches: ["statefulsets ingester-zone-d 5", `${STATUS} 5`],
  },
  "D01 shrinks once all delays are over": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: prepared({ 3: 70, 4: 70 }),
    requests: ["DELETE a-0", "DELETE a-1", "DELETE a-2", "POST a-3", "POST a-4"],
    patches: [`${A} 3`, `${STATUS} 3`],
  },
  "D02 waits for the delay": {
    zones: [delayed(5)],
    reference: [3, 3],
    pods: prepared({ 3: 30, 4: 0 }),
    requests: ["DELETE a-0", "DELETE a-1", "DELETE a-2", "POST a-3", "POST a-4"],
    ...HOLDS_5,
    waits: ["DelayNotReached"],
  },
  "D03 waits for the last pod": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: prepared({ 3: 70 }),
    patches: [],
    waits: ["DelayNotReached"],
  },
  "D04 shrinks by those at the end whose delay is over": {
    zones: [delayed(5)],
    reference: [1, 5],
    pods: prepared({ 4: 70, 3: 75, 2: 30, 1: 75 }),
    patches: [`${A} 3`, `${STATUS} 3`],
  },
  "D05 does not shrink when a POST fails, whatever its body says": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: postAnswers({ ...OLD, status: 500 }),
    patches: [],
    waits: ["PrepareFailed"],
  },
  "D06 does not shrink when a pod cannot be reached": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: postAnswers(new RolloutError("Unreachable", "refused")),
    patches: [],
    waits: ["PrepareFailed"],
  },
  "D07 does not shrink when a pod talks nonsense": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: postAnswers({ body: "prepared" }),
    patches: [],
    waits: ["PrepareFailed"],
  },
  "a POST that is refused with 409 is a failure": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: postAnswers({ ...OLD, status: 409 }),
    patches: [],
    waits: ["PrepareFailed"],
  },
  "D08 a zone that waits does not hold back another": {
    zones: [delayed(5), delayed(5)],
    reference: [3, 5],
    pods: (_method, _ordinal, zone) => ({ minutesAgo: zone === "b" ? 70 : 0 }),
    requests: ["a", "b"]
      .flatMap((zone) => [0, 1, 2].map((i) => `DELETE ${zone}-${i}`))
      .concat(["a", "b"].flatMap((zone) => [3, 4].map((i) => `POST ${zone}-${i}`))),
    patches: ["statefulsets ingester-zone-b 3", `${STATUS} 3`],
    waits: ["DelayNotReached"],
  },
  "D09 grows at once, and tells those that are there": {
    zones: [delayed(2)],
    reference: [5, 2],
    pods: () => ({}),
    requests: ["DELETE a-0", "DELETE a-1"],
    patches: [`${A} 5`, `${STATUS} 5`],
  },
  "D10 tells all when nothing is to change": {
    zones: [delayed(3)],
    reference: [3, 3],
    pods: () => ({}),
    requests: ["DELETE a-0", "DELETE a-1", "DELETE a-2"],
    patches: [],
  },
  "D11 grows although a preparation is locked": {
    zones: [delayed(2)],
    reference: [5, 2],
    pods: () => ({ status: 409 }),
    patches: [`${A} 5`, `${STATUS} 5`],
  },
  "D12 forced to fewer than the reference wants, with the delay": {
    zones: [delayed(5, force(2))],
    reference: [10, 5],
    pods: () => OLD,
    requests: ["DELETE a-0", "DELETE a-1", "POST a-2", "POST a-3", "POST a-4"],
    patches: [`${A} 2`, `${STATUS} 2`],
  },
  "D13 forced to none, too early": {
    zones: [delayed(3, force(0))],
    reference: [5, 3],
    pods: () => ({ minutesAgo: 30 }),
    requests: ["POST a-0", "POST a-1", "POST a-2"],
    patches: [],
    waits: ["DelayNotReached"],
  },
  "D14 forced to what there is": {
    zones: [delayed(3, force(3))],
    reference: [5, 3],
    pods: () => ({}),
    requests: ["DELETE a-0", "DELETE a-1", "DELETE a-2"],
    patches: [],
  },
  "D15 force concerns its own zone, and the others wait for the next pass": {
    zones: [delayed(5, force(0)), delayed(5), delayed(5)],
    reference: [3, 5],
    pods: () => OLD,
    requests: [0, 1, 2, 3, 4].map((i) => `POST a-${i}`),
    patches: [`${A} 0`, `${STATUS} 0`],
  },
  "D17 a delay of 0 is none": {
    zones: [delayed(5, { "grafana.com/rollout-delayed-downscale": "0" })],
    reference: [3, 5],
    requests: [],
    patches: [`${A} 3`, `${STATUS} 3`],
  },
  "D17 a delay that cannot be read keeps a zone from growing, too": {
    zones: [delayed(2, { "grafana.com/rollout-delayed-downscale": "soon" })],
    reference: [5, 5],
    requests: [],
    patches: [`${STATUS} 2`],
    waits: ["DelayInvalid"],
  },
  "a delay that cannot be read is no matter while nothing is to change": {
    zones: [delayed(3, { "grafana.com/rollout-delayed-downscale": "soon" })],
    reference: [3, 3],
    requests: [],
    patches: [],
  },
  "the time between zones holds a mirroring zone that asks for it": {
    zones: [
      { ...mirroring(3), labels: { "grafana.com/min-time-between-zones-downscale": "12h" } },
      { replicas: 1, annotations: { "grafana.com/last-downscale": "2999-01-01T00:00:00Z" } },
    ],
    reference: [2, 3],
    patches: [],
    waits: ["MinTimeBetweenZones"],
  },
  "a kind that the server does not know holds its zone alone (C08)": {
    zones: [mirroring(2, { "grafana.com/rollout-mirror-replicas-from-resource-kind": "Unknown" }), mirroring(2)],
    reference: [5, 5],
    patches: ["statefulsets ingester-zone-b 5"],
    waits: ["ReferenceUnreadable"],
  },
  "a reference that is not there holds its zone alone (C09)": {
    zones: [mirroring(2, { "grafana.com/rollout-mirror-replicas-from-resource-name": "absent" }), mirroring(2)],
    reference: [5, 5],
    patches: ["statefulsets ingester-zone-b 5"],
    waits: ["ReferenceUnreadable"],
  },
  "an API version with two slashes is refused": {
    zones: [mirroring(2, { "grafana.com/rollout-mirror-replicas-from-resource-api-version": "a/b/c" })],
    reference: [5, 5],
    patches: [],
    waits: ["ReferenceUnreadable"],
  },
  "only the group of the API version counts": {
    zones: [mirroring(2, { "grafana.com/rollout-mirror-replicas-from-resource-api-version": "rollout-operator.grafana.com/v999" })],
    reference: [5, 5],
    patches: [`${A} 5`],
  },
};

describe("mirroring", () => {
  for (const [name, { zones, reference, pods, requests, patches, waits = [] }] of Object.entries(CASES)) {
    it(name, async () => {
      await on.reference(...reference);
      await on.zones(...zones);
      const pass = await on.pass(pods);
      assert.deepEqual([pass.patches, pass.waits], [patches, waits]);
      if (requests) assert.deepEqual(pass.requests, requests);
    });
  }

  it("C08, C09 what keeps a zone from being scaled does not fail the group, nor keep it from rolling out", async () => {
    await on.reference(5, 5);
    await on.zones(mirroring(2, { "grafana.com/rollout-mirror-replicas-from-resource-kind": "Unknown" }));
    assert.equal((await on.pass()).outcome.state, "settled");
    deploy(on.stage, "x:2", { zones: ["a"], replicas: 2 });
    await on.stage.time.advance(500);
    const { outcome, waits } = await on.pass();
    assert.deepEqual([outcome.state, waits], ["acted", ["ReferenceUnreadable"]]);
  });

  it("finds a kind that was defined only after it was first asked for", async () => {
    const kind = {
      "grafana.com/rollout-mirror-replicas-from-resource-kind": "Late",
      "grafana.com/rollout-mirror-replicas-from-resource-api-version": "late.example/v1",
    };
    await on.zones(mirroring(2, kind));
    assert.deepEqual((await on.pass()).waits, ["ReferenceUnreadable"]);
    const crd = (
      await on.call("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/replicatemplates.rollout-operator.grafana.com")
    ).body as { spec: object };
    const names = { plural: "lates", singular: "late", kind: "Late", listKind: "LateList" };
    await on.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "lates.late.example" },
      spec: { ...crd.spec, group: "late.example", names },
    });
    await on.call("POST", "/apis/late.example/v1/namespaces/default/lates", {
      apiVersion: "late.example/v1",
      kind: "Late",
      metadata: { name: "template" },
      spec: { replicas: 4 },
    });
    assert.deepEqual((await on.pass()).patches, [`${A} 4`, "lates/status template 4"]);
  });

  it("does not shrink by what the reference wanted before the pods had answered", async () => {
    await on.reference(3, 5);
    await on.zones(delayed(5));
    let grown = false;
    const { cluster } = on.stage.connect();
    const slow: Cluster = {
      ...cluster,
      get: async (resource, ref, call) => {
        const before = await cluster.get(resource, ref, call);
        if (!grown && ref.subresource === "scale") await on.reference(5);
        grown = true;
        return before;
      },
    };
    assert.deepEqual((await on.pass(() => OLD, slow)).patches, []);
  });

  it("a refusal to scale is told with its words, and starves neither the other zones nor the rollout", async () => {
    await on.reference(5, 5);
    await on.zones(mirroring(2), mirroring(2));
    const { cluster } = on.stage.connect();
    const refusing: Cluster = {
      ...cluster,
      change: (resource, ref, type, body, call) =>
        ref.name === "ingester-zone-a"
          ? Promise.reject(new RolloutError("Forbidden", 'admission webhook "x" denied the request: no'))
          : cluster.change(resource, ref, type, body, call),
    };
    const { patches, waits, outcome } = await on.pass(undefined, refusing);
    assert.deepEqual([patches, waits], [["statefulsets ingester-zone-b 5"], ["ScaleRefused"]]);
    assert.match(outcome.waits[0]?.message ?? "", /scaling ingester-zone-a from 2 to 5 replicas.*denied the request: no/);
  });
});
