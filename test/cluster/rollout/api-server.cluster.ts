import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { assertNoViolations, deletions, returns } from "../stage/invariants.ts";
import { scenario } from "../stage/stage.ts";

const RESTART = join(import.meta.dirname, "../../plane/restart");
/**
 * The control plane of test/plane keeps its processes' ids beside its kubeconfig; others we cannot restart.
 */
const RUN = dirname(process.env["KUBECONFIG"] ?? "");
const DOWN_SECONDS = "2";

if (!existsSync(join(RUN, "kube-apiserver.pid"))) {
  console.log(
    "KUBECONFIG does not name a control plane that test/plane/up started: the scenario that kills its API server is left out",
  );
} else {
  scenario("after an API server was killed and restarted, the rollout completes without a violation", async (stage) => {
    const { create, start, setImage, done, timeline } = stage;
    const zones = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name }));
    await create(zones);
    const reconciler = start({ RECONCILE_INTERVAL: "1s" });
    await setImage("app:2", zones);
    await timeline.until("zone-b-0 is back, and zone-b-1 is next", () => {
      const [, , , back] = returns(timeline.entries);
      return timeline.entries.some(({ uid, state }) => uid === back?.uid && state === "ready");
    });
    await promisify(execFile)(RESTART, ["kube-apiserver", DOWN_SECONDS], { env: { ...process.env, RUN } });
    await done("app:2", zones);
    assert.equal(await reconciler.end(), 0);

    assertNoViolations(timeline.entries);
    const deleted = deletions(timeline.entries).map(({ pod }) => pod);
    assert.equal(deleted.length, 9);
    assert.equal(new Set(deleted).size, 9);
  });
}
