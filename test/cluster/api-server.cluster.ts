import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { assertNoViolations, deletions, returns } from "./invariants.ts";
import { scenario } from "./stage.ts";

const RESTART = process.env["CLUSTER_RESTART"];
const DOWN_SECONDS = "2";

if (RESTART === undefined) {
  console.log("CLUSTER_RESTART is not set (a command that kills and restarts a process of the control plane): that scenario is left out");
} else {
  scenario("an API server that is killed and comes back stops nothing for good and lets nothing slip", async (stage) => {
    const { create, start, setImage, annotatePod, done, timeline } = stage;
    const zones = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name }));
    await create(zones);
    // A simulated kubelet whose one report meets a dead server makes no other: this pod's end comes when the
    // server is back.
    await annotatePod("zone-b-1", { "sim/exit-after-ms": "10000" });
    const reconciler = start({ RECONCILE_INTERVAL: "1s" });
    await setImage("app:2", zones);
    await timeline.until("zone-b-0 is back, and zone-b-1 is next", () => {
      const [, , , back] = returns(timeline.entries);
      return timeline.entries.some(({ uid, state }) => uid === back?.uid && state === "ready");
    });
    await promisify(execFile)(RESTART, ["kube-apiserver", DOWN_SECONDS]);
    await done("app:2", zones);
    assert.equal(await reconciler.end(), 0);

    assertNoViolations(timeline.entries);
    const deleted = deletions(timeline.entries).map(({ pod }) => pod);
    assert.equal(deleted.length, 9);
    assert.equal(new Set(deleted).size, 9);
  });
}
