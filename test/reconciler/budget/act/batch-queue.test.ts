/** Requests that have to find out their budget first. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { createReserver } from "../../../../reconciler/budget/act/reserve.ts";
import { systemClock as clock } from "../../../../infra/clock.ts";

const BUDGET = {
  metadata: { namespace: "n", name: "zpdb", uid: "b" },
  spec: { maxUnavailable: 1, selector: { matchLabels: { x: "y" } } },
};

it("pods of a StatefulSet that no budget selects are read beside each other after the first, at most 32 at once", async () => {
  let inFlight = 0;
  let most = 0;
  const cluster = {
    async *list() {
      yield { items: [BUDGET], resourceVersion: "1" };
    },
    async get(_resource: unknown, { name }: { readonly name: string }) {
      most = Math.max(most, ++inFlight);
      await new Promise((resolve) => setImmediate(resolve));
      inFlight--;
      return { metadata: { namespace: "n", name, uid: name, labels: { app: "other" } }, status: { phase: "Running" } };
    },
  } as unknown as Cluster;
  const options = {
    clock,
    by: "one",
    random: () => 0,
    onBudgets: () => {},
  };
  const reserver = createReserver({ cluster, ...options });
  const requests = Array.from({ length: 130 }, (_, i) => ({
    namespace: "n",
    name: `web-${i}`,
    dryRun: false,
    deadlineAt: clock.monotonic() + 9000,
  }));
  const results = await Promise.all(requests.map((request) => reserver.reserve(request)));
  assert.deepEqual([...new Set(results.map(({ verdict }) => verdict.reason))], ["PodNotInScope"]);
  assert.equal(most, 32);
});
