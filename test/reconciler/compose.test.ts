import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../infra/clock.ts";
import { compose } from "../../reconciler/compose.ts";

it("a run does not start unless its Lease is shorter than its time budget", async () => {
  const env = { KUBERNETES_NAMESPACE: "own", RECONCILE_TIME_BUDGET: "10s" };
  await assert.rejects(compose(env, systemClock), { code: "BadConfiguration", message: /LEASE_DURATION is 15s by default/ });
});
