import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { deploy } from "../stage.ts";
import { A, type Case, mirroring, playCases, STATUS } from "./mirror-cases.ts";
import { mirrorStage, type MirrorStage } from "./mirror-stage.ts";
import { make } from "../../builders.ts";

let on: MirrorStage;
beforeEach(async () => (on = await mirrorStage()));
afterEach(() => on.stage.close());

const CASES: Readonly<Record<string, Case>> = {
  "grows, and writes back": { zones: [mirroring(2)], reference: [5, 2], patches: [`${A} 5`, `${STATUS} 5`] },
  "stays, and writes back": { zones: [mirroring(3)], reference: [3, 5], patches: [`${STATUS} 3`] },
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
  "a missing reference holds only its zone": {
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
  ...Object.fromEntries(
    ["template/proxy/y", "template%2Fproxy", "..", "x".repeat(254)].map((name) => [
      `no object has the name ${name.slice(0, 20)}`,
      {
        zones: [mirroring(2, { "grafana.com/rollout-mirror-replicas-from-resource-name": name })],
        reference: [5, 5],
        patches: [],
        waits: ["ReferenceUnreadable"],
      },
    ]),
  ),
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
  playCases(CASES, () => on);

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
