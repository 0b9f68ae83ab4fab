import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { examineAutoscalers, examineMirrors } from "../../../cli/decide/mirror-findings.ts";
import type { HorizontalPodAutoscaler } from "../../../infra/kubernetes/resources.ts";
import { readZone, type Zone } from "../../../reconciler/model/zone.ts";
import { statefulSetObject } from "../../reconciler/builders.ts";
import { MIRROR } from "../../reconciler/scaling/mirror-stage.ts";

it("finds a mirrored resource that does not exist, and proposes the nearest name", () => {
  const zone = readZone(statefulSetObject({ name: "ingester-zone-a", annotations: { ...MIRROR } }));
  const missing = "not found";
  const near = examineMirrors([{ zone, missing, names: ["templates", "other"] }]);
  assert.deepEqual(
    near.map(({ level, check, object }) => `${level} ${check} ${object}`),
    ["error mirror-missing statefulset/ingester-zone-a"],
  );
  assert.match(
    near[0]?.fix ?? "",
    /^kubectl -n test annotate --overwrite statefulset ingester-zone-a \S+-resource-name=templates$/,
  );
  assert.match(examineMirrors([{ zone, missing, names: ["other"] }])[0]?.fix ?? "", /^create ReplicaTemplate template/);
  assert.deepEqual(examineMirrors([{ zone, missing: undefined, names: [] }]), []);
});

describe("an autoscaler that may scale to 0", () => {
  const LEADER = "grafana.com/rollout-downscale-leader";
  const zoneOf = (name: string, annotations: Readonly<Record<string, string>> = {}) =>
    readZone(statefulSetObject({ name, annotations }));
  const [a, b, c] = [zoneOf("zone-a"), zoneOf("zone-b"), zoneOf("zone-c")];
  const [bAfterA, cAfterB] = [zoneOf("zone-b", { [LEADER]: "zone-a" }), zoneOf("zone-c", { [LEADER]: "zone-b" })];
  const mirroring = ["zone-a", "zone-b"].map((name) => zoneOf(name, MIRROR));
  const TEMPLATE = { kind: "ReplicaTemplate", name: "template" };
  const A = { apiVersion: "apps/v1", kind: "StatefulSet", name: "zone-a" };
  const TABLE: readonly {
    readonly name: string;
    readonly target: object;
    readonly zones: readonly Zone[];
    readonly least?: number;
    readonly found: string | undefined;
  }[] = [
    {
      name: "what zones mirror",
      target: TEMPLATE,
      zones: mirroring,
      found:
        "mirror-to-zero: it may scale ReplicaTemplate/template to 0, and zone-a, zone-b with it: no pod of them would be left",
    },
    { name: "what zones mirror, to 1", target: TEMPLATE, zones: mirroring, least: 1, found: undefined },
    { name: "what nobody mirrors", target: { ...TEMPLATE, name: "else" }, zones: mirroring, found: undefined },
    {
      name: "the only zone",
      target: A,
      zones: [a],
      found: "zone-to-zero: it may scale StatefulSet/zone-a to 0: no pod of it would be left",
    },
    {
      name: "one of two zones",
      target: A,
      zones: [a, b],
      found:
        "zone-to-zero: it may scale StatefulSet/zone-a to 0: zone-b alone would serve, and nothing would be kept whole while it rolls out or is drained",
    },
    {
      name: "one of three zones",
      target: A,
      zones: [a, b, c],
      found:
        "zone-to-zero: it may scale StatefulSet/zone-a to 0: no pod of it would be left, and zone-b, zone-c would not wait for it",
    },
    {
      name: "a leader of leaders",
      target: A,
      zones: [cAfterB, bAfterA, a],
      found:
        "zone-to-zero: it may scale StatefulSet/zone-a to 0, and zone-b, zone-c with it: no pod of them would be left",
    },
    { name: "one of two zones, to 1", target: A, zones: [a, b], least: 1, found: undefined },
    { name: "a Deployment of the name", target: { ...A, kind: "Deployment" }, zones: [a, b], found: undefined },
    {
      name: "another kind of the name",
      target: { ...A, apiVersion: "apps.kruise.io/v1beta1" },
      zones: [a, b],
      found: undefined,
    },
  ];
  for (const { name, target, zones, least = 0, found } of TABLE)
    it(`${name}: ${found ?? "no finding"}`, () => {
      const scaler = {
        metadata: { namespace: "test", name: "scaler" },
        spec: { minReplicas: least, maxReplicas: 9, scaleTargetRef: target },
      } as unknown as HorizontalPodAutoscaler;
      const [finding, ...more] = examineAutoscalers([scaler], zones);
      assert.deepEqual(more, []);
      assert.equal(finding && `${finding.check}: ${finding.message}`, found);
      if (!finding) return;
      assert.equal(finding.object, "hpa/scaler");
      assert.equal(finding.fix, `kubectl -n test patch hpa scaler --type=merge -p '{"spec":{"minReplicas":1}}'`);
    });
});
