/** Zones that mirror a resource, with and without a delay: one pass over the group (§2.4-§2.6). */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { deploy } from "../stage.ts";
import { DELAYED, MIRROR, type MirrorStage, mirrorStage, type MirrorZone, type PodAnswers } from "./mirror-stage.ts";
import { amend, make } from "../../builders.ts";

let on: MirrorStage;
beforeEach(async () => (on = await mirrorStage()));
afterEach(() => on.stage.close());

const mirroring = (replicas: number, more: Record<string, string> = {}): MirrorZone => ({
  replicas,
  annotations: { ...MIRROR, ...more },
});

const A = "statefulsets ingester-zone-a";
const STATUS = "replicatemplates/status template";

interface Case {
  readonly zones: readonly MirrorZone[];
  /** The reference's `spec.replicas` and `status.replicas`. */
  readonly reference: readonly [spec: number, status: number];
  readonly pods?: PodAnswers;
  readonly requests?: readonly string[];
  readonly patches: readonly string[];
  readonly waits?: readonly string[];
}

/** Registers one test per case. */
function playCases(cases: Readonly<Record<string, Case>>): void {
  for (const [name, { zones, reference, pods, requests, patches, waits = [] }] of Object.entries(cases)) {
    it(name, async () => {
      await on.reference(...reference);
      await on.zones(...zones);
      const pass = await on.pass(pods);
      assert.deepEqual([pass.patches, pass.waits], [patches, waits]);
      if (requests) assert.deepEqual(pass.requests, requests);
    });
  }
}

const CASES: Readonly<Record<string, Case>> = {
  "grows, and writes back": { zones: [mirroring(2)], reference: [5, 2], patches: [`${A} 5`, `${STATUS} 5`] },
  // As the scale is read again, the second and third zone see that the first has written it back.
  "one of four zones changes at a time; one without annotations never": {
    zones: [{ replicas: 1 }, mirroring(5), mirroring(5), mirroring(2)],
    reference: [5, 2],
    patches: [`${STATUS} 5`, "statefulsets ingester-zone-d 5"],
  },
  "the time between zones holds a mirroring zone that sets it": {
    zones: [
      { ...mirroring(3), labels: { "grafana.com/min-time-between-zones-downscale": "12h" } },
      { replicas: 1, annotations: { "grafana.com/last-downscale": "2999-01-01T00:00:00Z" } },
    ],
    reference: [2, 3],
    patches: [],
    waits: ["MinTimeBetweenZones"],
  },
  "a kind that the server does not know holds only its zone": {
    zones: [mirroring(2, { "grafana.com/rollout-mirror-replicas-from-resource-kind": "Unknown" }), mirroring(2)],
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
    zones: [
      mirroring(2, {
        "grafana.com/rollout-mirror-replicas-from-resource-api-version": "rollout-operator.grafana.com/v999",
      }),
    ],
    reference: [5, 5],
    patches: [`${A} 5`],
  },
};

describe("mirroring", () => {
  playCases(CASES);

  it("a hold on a zone's scaling neither fails the group nor stops its rollout", async () => {
    await on.reference(5, 5);
    await on.zones(mirroring(2, { "grafana.com/rollout-mirror-replicas-from-resource-kind": "Unknown" }));
    assert.equal((await on.pass()).outcome.state, "settled");
    deploy(on.stage, "x:2", { zones: ["a"], replicas: 2 });
    await on.stage.time.advance(500);
    const { outcome, waits } = await on.pass();
    assert.deepEqual([outcome.state, waits], ["acted", ["ReferenceUnreadable"]]);
  });

  it("refuses a name with a slash by its annotation, before anything is asked", async () => {
    await on.zones(mirroring(2, { "grafana.com/rollout-mirror-replicas-from-resource-name": "x/proxy/y" }));
    const { cluster, calls } = on.stage.connect();
    const { outcome } = await on.pass(undefined, cluster);
    assert.match(
      outcome.scalingHolds.map(({ message }) => message).join(),
      /annotation grafana\.com\/rollout-mirror-replicas-from-resource-name is "x\/proxy\/y": no object has such a name/,
    );
    assert.deepEqual(
      calls.filter((call) => /proxy|replicatemplates/.test(call)),
      [],
    );
  });

  it("finds a kind that was defined only after its first lookup", async () => {
    const kind = {
      "grafana.com/rollout-mirror-replicas-from-resource-kind": "Late",
      "grafana.com/rollout-mirror-replicas-from-resource-api-version": "late.example/v1",
    };
    await on.zones(mirroring(2, kind));
    assert.deepEqual((await on.pass()).waits, ["ReferenceUnreadable"]);
    const crd = (
      await on.call(
        "GET",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/replicatemplates.rollout-operator.grafana.com",
      )
    ).body as { spec: object };
    const names = { plural: "lates", singular: "late", kind: "Late", listKind: "LateList" };
    await on.call(
      "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      make("CustomResourceDefinition", "lates.late.example", { spec: { ...crd.spec, group: "late.example", names } }),
    );
    await on.call("POST", "/apis/late.example/v1/namespaces/default/lates", {
      apiVersion: "late.example/v1",
      kind: "Late",
      metadata: { name: "template" },
      spec: { replicas: 4 },
    });
    assert.deepEqual((await on.pass()).patches, [`${A} 4`, "lates/status template 4"]);
  });

  it("a refusal to scale is reported with its message, and starves neither the other zones nor the rollout", async () => {
    await on.reference(5, 5);
    await on.zones(mirroring(2), mirroring(2));
    const { cluster } = on.stage.connect();
    const refusing: Cluster = {
      ...cluster,
      change: (resource, patch, call) =>
        patch.name === "ingester-zone-a"
          ? Promise.reject(new RolloutError("Forbidden", 'admission webhook "x" denied the request: no'))
          : cluster.change(resource, patch, call),
    };
    const { patches, waits, outcome } = await on.pass(undefined, refusing);
    assert.deepEqual([patches, waits], [["statefulsets ingester-zone-b 5"], ["ScaleRefused"]]);
    assert.match(
      outcome.scalingHolds[0]?.message ?? "",
      /scaling ingester-zone-a from 2 to 5 replicas.*denied the request: no/,
    );
  });
});

const delayed = (replicas: number, more: Record<string, string> = {}): MirrorZone =>
  mirroring(replicas, { ...DELAYED, ...more });
const prepared =
  (minutesAgo: Readonly<Record<number, number>>): PodAnswers =>
  (_method, ordinal) => ({ minutesAgo: minutesAgo[ordinal] ?? 0 });
const postAnswers =
  (answer: ReturnType<PodAnswers>): PodAnswers =>
  (method) =>
    method === "POST" ? answer : {};
const OLD = { minutesAgo: 70 };
const HOLDS_5 = { patches: [`${STATUS} 5`] };

const DELAYED_CASES: Readonly<Record<string, Case>> = {
  "shrinks once all delays are over": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: prepared({ 3: 70, 4: 70 }),
    requests: ["DELETE a-0", "DELETE a-1", "DELETE a-2", "POST a-3", "POST a-4"],
    patches: [`${A} 3`, `${STATUS} 3`],
  },
  "waits for the delay": {
    zones: [delayed(5)],
    reference: [3, 3],
    pods: prepared({ 3: 30, 4: 0 }),
    requests: ["DELETE a-0", "DELETE a-1", "DELETE a-2", "POST a-3", "POST a-4"],
    ...HOLDS_5,
    waits: ["DelayNotReached"],
  },
  "does not shrink if a POST fails, regardless of its body": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: postAnswers({ ...OLD, status: 500 }),
    patches: [],
    waits: ["PrepareFailed"],
  },
  "a waiting zone does not hold another": {
    zones: [delayed(5), delayed(5)],
    reference: [3, 5],
    pods: (_method, _ordinal, zone) => ({ minutesAgo: zone === "b" ? 70 : 0 }),
    requests: ["a", "b"]
      .flatMap((zone) => [0, 1, 2].map((i) => `DELETE ${zone}-${i}`))
      .concat(["a", "b"].flatMap((zone) => [3, 4].map((i) => `POST ${zone}-${i}`))),
    patches: ["statefulsets ingester-zone-b 3", `${STATUS} 3`],
    waits: ["DelayNotReached"],
  },
  "grows although a preparation is locked": {
    zones: [delayed(2)],
    reference: [5, 2],
    pods: () => ({ status: 409 }),
    patches: [`${A} 5`, `${STATUS} 5`],
  },
};

describe("mirroring with a delay", () => {
  playCases(DELAYED_CASES);

  it("cancels the preparation of pods in the next pass if the reference has changed", async () => {
    await on.reference(3, 5);
    await on.zones(delayed(5));
    const requests: string[][] = [];
    for (const wanted of [3, 5, 4, 5]) {
      await on.reference(wanted);
      requests.push([...(await on.pass(() => ({}))).requests]);
    }
    const stay = (count: number): string[] => Array.from({ length: count }, (_, i) => `DELETE a-${i}`);
    assert.deepEqual(requests, [[...stay(3), "POST a-3", "POST a-4"], stay(5), [...stay(4), "POST a-4"], stay(5)]);
  });

  it("does not shrink to the replicas that the reference wanted before the pods answered", async () => {
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

  it("of two zones that may shrink to different sizes, one waits for a pod that the other's size gives up: 4 and 3", async () => {
    await on.reference(3, 5);
    await on.zones(delayed(5), delayed(5), mirroring(3));
    const { store } = on.stage.emulator;
    amend(store, "StatefulSet", "ingester-zone-c", { spec: { replicas: 4 } });
    await on.stage.time.advance(50);
    amend(store, "Pod", "ingester-zone-c-3", { annotations: { "sim/ready": "false" } });
    // Longer than a pod that works may take to become ready.
    await on.stage.time.advance(61 * 60_000);
    const pass = await on.pass((_method, ordinal, zone) => ({ minutesAgo: zone === "a" && ordinal === 3 ? 30 : 70 }));
    assert.deepEqual(
      [pass.patches, pass.waits],
      [["statefulsets ingester-zone-b 3", `${STATUS} 3`], ["OtherZoneNotReady"]],
    );
  });
});
