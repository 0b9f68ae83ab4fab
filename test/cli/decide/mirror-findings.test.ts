import assert from "node:assert/strict";
import { it } from "node:test";
import { examineMirrors } from "../../../cli/decide/mirror-findings.ts";
import type { HorizontalPodAutoscaler } from "../../../infra/kubernetes/resources.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { statefulSetObject } from "../../reconciler/builders.ts";
import { MIRROR } from "../../reconciler/scaling/mirror-stage.ts";

it("finds a mirrored resource that does not exist, and proposes the nearest name", () => {
  const zone = readZone(statefulSetObject({ name: "ingester-zone-a", annotations: { ...MIRROR } }));
  const missing = "not found";
  const near = examineMirrors([{ zone, missing, names: ["templates", "other"] }], []);
  assert.deepEqual(
    near.map(({ level, check, object }) => `${level} ${check} ${object}`),
    ["error mirror-missing statefulset/ingester-zone-a"],
  );
  assert.match(
    near[0]?.fix ?? "",
    /^kubectl -n test annotate --overwrite statefulset ingester-zone-a \S+-resource-name=templates$/,
  );
  assert.match(
    examineMirrors([{ zone, missing, names: ["other"] }], [])[0]?.fix ?? "",
    /^create ReplicaTemplate template/,
  );
  assert.deepEqual(examineMirrors([{ zone, missing: undefined, names: [] }], []), []);
});

it("finds an autoscaler that may set what zones mirror to 0, and no other", () => {
  const zone = readZone(statefulSetObject({ name: "ingester-zone-a", annotations: { ...MIRROR } }));
  const scaler = (name: string, minReplicas: number, target = "template") =>
    ({
      metadata: { namespace: "test", name },
      spec: { minReplicas, maxReplicas: 9, scaleTargetRef: { kind: "ReplicaTemplate", name: target } },
    }) as unknown as HorizontalPodAutoscaler;
  const all = [scaler("zero", 0), scaler("one", 1), scaler("other", 0, "else")];
  const [finding, ...more] = examineMirrors([{ zone, missing: undefined, names: [] }], all);
  assert.deepEqual([finding?.object, more], ["hpa/zero", []]);
  assert.equal(finding?.fix, `kubectl -n test patch hpa zero --type=merge -p '{"spec":{"minReplicas":1}}'`);
});
