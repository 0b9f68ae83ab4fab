import assert from "node:assert/strict";
import { it } from "node:test";
import { diagnose } from "../../../../cli/decide/doctor/checks.ts";
import { readZone } from "../../../../reconciler/model/zone.ts";
import { statefulSetObject } from "../../../reconciler/builders.ts";

it("errors come first, and a change is proposed once, by the gravest finding", () => {
  const leader = "grafana.com/rollout-downscale-leader";
  const objects = [
    statefulSetObject({ name: "db-zone-a", labels: { "rollout-group": "compactr" } }),
    statefulSetObject({
      name: "db-zone-b",
      labels: { "rollout-group": "compactor" },
      annotations: { [leader]: "db-zone-a" },
    }),
    statefulSetObject({ name: "db-zone-c", labels: { "rollout-group": "compactor" }, updateStrategy: "RollingUpdate" }),
  ];
  const found = diagnose({ sets: objects.map((object) => ({ object, zone: readZone(object) })) });
  assert.deepEqual(
    found.map(({ level, check }) => `${level} ${check}`),
    ["error not-on-delete", "error leader-missing"],
  );
});
