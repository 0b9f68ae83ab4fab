import assert from "node:assert/strict";
import { it } from "node:test";
import { refuseByHealth } from "../../../reconciler/downscale/decide-admission.ts";
import { zone } from "../builders.ts";

it("a zone whose status is older than its spec holds the downscales of other zones although all its pods are ready: it may be about to roll out", () => {
  assert.equal(
    refuseByHealth({ zones: [zone()] }, { zone: zone({ name: "ingester-zone-x" }), size: 3, now: 0 }),
    undefined,
  );
  assert.equal(
    refuseByHealth(
      { zones: [zone({ generation: 2, observedGeneration: 1 })] },
      {
        zone: zone({ name: "ingester-zone-x" }),
        size: 3,
        now: 0,
      },
    )?.reason,
    "OtherZoneNotReady",
  );
});
