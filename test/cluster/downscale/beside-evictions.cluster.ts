/**
 * Downscales in the midst of evictions: two zones that the reconciler scales with a ReplicaTemplate, one that a user
 * scales through prepare-downscale, and clients that evict pods of all zones all the time. Never do pods of two zones
 * go together.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { evict } from "../stage/evict.ts";
import { createBudget, serveWebhooks } from "../stage/eviction-stage.ts";
import { type Entry, findViolations } from "../stage/invariants.ts";
import { PODS_HERE, startPodServer } from "../stage/pods.ts";
import { createReplicaTemplate, mirrorOf } from "../stage/replica-template.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const NAMES = ["zone-a", "zone-b", "zone-c"];
const FULL = 3;
const SMALL = 1;
const ROUNDS = 4;
/** On a slow machine more are needed until evictions and downscales have met. */
const MAX_ROUNDS = 20;

/**
 * A pod that a downscale removed is missed by nobody once it is gone, and one that growth makes has not served yet: an
 * eviction may be judged a moment before the zone grows. Evictions are of the pods that stay.
 */
const withoutRemoved = (entries: readonly Entry[]): Entry[] =>
  entries.map((entry) =>
    ["gone", "notReady"].includes(entry.state) && !entry.pod.endsWith("-0") ? { ...entry, state: "ready" } : entry,
  );

scenario(
  "pods of two zones never go together, by downscales of the reconciler, by one through a webhook, and by evictions",
  async (stage) => {
    const { admin, namespace, timeline, call } = stage;
    const group = `ingester-${namespace}`;
    const pods = await startPodServer();
    const template = await createReplicaTemplate(admin, namespace, "t");
    const annotations = {
      "grafana.com/prepare-downscale-http-port": String(pods.port),
      "grafana.com/prepare-downscale-http-path": "prepare-downscale",
    };
    const labels = { "grafana.com/prepare-downscale": "true" };
    await stage.create([
      { group, name: "zone-a", annotations: mirrorOf("t") },
      { group, name: "zone-b", annotations: { ...annotations, ...mirrorOf("t") }, labels },
      { group, name: "zone-c", annotations, labels },
    ]);
    const webhooks = await serveWebhooks(stage, 2, { hooks: ["pod-eviction", "prepare-downscale"], env: PODS_HERE });
    const over = new AbortController();
    try {
      await createBudget(stage, group, { maxUnavailable: 1 });
      const reconciler = stage.start({ ...PODS_HERE, RECONCILE_INTERVAL: "300ms" });
      const answers = { allowed: 0, removed: 0 };
      const evicting = NAMES.map(async (zone) => {
        while (!over.signal.aborted) {
          const { code, message } = await evict(stage, `${zone}-0`);
          if (code === 201) answers.allowed++;
          if (message.includes("to be removed")) answers.removed++;
          // Downscales find their turn between evictions.
          await sleep(code === 201 ? 2500 : 50);
        }
      });
      const have = (size: number): boolean =>
        NAMES.every((name) => {
          const { spec, status } = timeline.statefulSets.get(name) ?? {};
          return spec?.replicas === size && status?.replicas === size;
        });
      const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
      const isEnough = (): boolean => answers.allowed >= ROUNDS && answers.removed > 0;
      for (let round = 0; round < ROUNDS || (!isEnough() && round < MAX_ROUNDS); round++) {
        for (const size of [SMALL, FULL]) {
          await call("PATCH", `${template}/scale`, { spec: { replicas: size } });
          await until(`the user scales zone-c to ${size}`, async () => {
            const path = round % 2 ? `${sets}/zone-c/scale` : `${sets}/zone-c`;
            return await call("PATCH", path, { spec: { replicas: size } }).then(
              () => true,
              () => false,
            );
          });
          await timeline.until(`all have ${size} pods`, () => have(size));
          // A pod that starts again is not ready, and evictions wait for it: at this size all must have come up once.
          const areReady = (): boolean =>
            [...timeline.pods.values()].every(({ pod, state }) => state === "ready" || pod.endsWith("-0"));
          if (size === FULL) await timeline.until("all that came back are ready", areReady);
        }
      }
      over.abort();
      await Promise.all(evicting);
      await timeline.caughtUp();
      const violations = findViolations(withoutRemoved(timeline.entries), () => FULL);
      assert.deepEqual(violations, []);
      stage.diagnostic(`${answers.allowed} evictions allowed, ${answers.removed} denied for pods to be removed`);
      assert.ok(isEnough(), JSON.stringify(answers));
      assert.equal(await reconciler.end(), 0);
    } finally {
      over.abort();
      pods.close();
      await webhooks.close();
    }
  },
);
