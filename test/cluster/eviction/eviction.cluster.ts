/** Evictions through the API server, one after the other, as in upstream's end-to-end tests. */
import assert from "node:assert/strict";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import { evictPatiently } from "../stage/evict.ts";
import { createBudget, serveWebhooks } from "../stage/eviction-stage.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const ZONES = ["zone-a", "zone-b"];
const PARTITIONS = { podNamePartitionRegex: "zone-[a-z]-([0-9]+)" };
/** Far longer than an answer takes on a machine under load. */
const DELAY_MS = 30_000;
const UNREADY = { "sim/ready": "false" };

interface Evictions extends Stage {
  readonly allowed: (pod: string) => Promise<void>;
  readonly denied: (pod: string, message: string) => Promise<void>;
  /** Makes an evicted pod's replacement, which starts unready, ready. */
  readonly recover: (pod: string) => Promise<void>;
}

/** Registers a test with two zones of two pods under a budget; replacements of evicted pods start unready. */
function evictions(name: string, spec: object, run: (evictions: Evictions) => Promise<void>): void {
  scenario(name, async (stage) => {
    const group = `cache-${stage.namespace}`;
    const zones = ZONES.map((zone) => ({ group, name: zone, replicas: 2 }));
    await stage.create(zones);
    await stage.setImage("app:2", zones, UNREADY);
    const webhooks = await serveWebhooks(stage, 1);
    const isReady = (pod: string, ready: boolean): boolean =>
      stage.timeline.entries.findLast((entry) => entry.pod === pod)?.state === (ready ? "ready" : "notReady");
    try {
      await assert.rejects(
        createBudget(stage, group, { maxUnavailable: -1 }),
        /is invalid.*should be greater than or equal to 0/,
      );
      await createBudget(stage, group, spec);
      await run({
        ...stage,
        allowed: async (pod) => {
          assert.deepEqual(await evictPatiently(stage, pod), { code: 201, message: "" });
          await stage.timeline.until(`${pod} is back`, () => isReady(pod, false));
        },
        denied: async (pod, message) => {
          const answer = await evictPatiently(stage, pod);
          assert.ok(answer.message.includes(`denied the request: ${message}`), answer.message);
          assert.equal(answer.code, 429);
        },
        recover: async (pod) => {
          await stage.annotatePod(pod, { "sim/ready": "true" });
          await stage.timeline.until(`${pod} is ready`, () => isReady(pod, true));
        },
      });
    } catch (error) {
      throw new Error(webhooks.processes.map((one) => one.output()).join("\n"), { cause: error });
    } finally {
      await webhooks.close();
    }
  });
}

evictions("one pod at a time, then the other zone", { maxUnavailable: 1 }, async ({ allowed, denied, recover }) => {
  await allowed("zone-a-0");
  await denied("zone-a-1", "1 pod not ready in zone-a");
  await denied("zone-b-0", "1 pod not ready in zone-a");
  await recover("zone-a-0");
  await allowed("zone-b-0");
});

evictions(
  "a pod that has just recovered protects its partition until the delay is over",
  { maxUnavailable: 1, crossZoneEvictionDelay: `${DELAY_MS / 1000}s`, ...PARTITIONS },
  async ({ allowed, denied, recover, start, patchZone, deletePod, admin, namespace, timeline }) => {
    for (const zone of ZONES)
      await patchZone(zone, { metadata: { annotations: { "grafana.com/rollout-paused": "true" } } });
    // It has become ready only now, however long the webhook took to start.
    await deletePod("zone-b-0");
    const isBack = (): boolean => timeline.entries.findLast(({ pod }) => pod === "zone-b-0")?.state === "notReady";
    await timeline.until("zone-b-0 is back", isBack);
    await recover("zone-b-0");
    await denied("zone-a-0", "1 pod not ready in partition 0");
    const reconciler = start({ RECONCILE_INTERVAL: "200ms" });
    /** By its Ready condition, milliseconds since the epoch. */
    const readySince = async (pod: string): Promise<number> => {
      let since = NaN;
      await until(`${pod} is ready`, async () => {
        const { metadata, status } = await admin.call<PodObject>("GET", `/api/v1/namespaces/${namespace}/pods/${pod}`);
        assert.equal(metadata?.annotations?.["grafana.com/ready-time"], undefined);
        const ready = status?.conditions?.find(({ type }) => type === "Ready");
        since = ready?.status === "True" ? Date.parse(ready.lastTransitionTime ?? "") : NaN;
        return !Number.isNaN(since);
      });
      return since;
    };
    const untilDelayIsOver = async (pod: string): Promise<void> => {
      const end = (await readySince(pod)) + DELAY_MS + 2000;
      await new Promise((resolve) => setTimeout(resolve, end - Date.now()));
    };
    await untilDelayIsOver("zone-b-0");
    await untilDelayIsOver("zone-a-1");
    await allowed("zone-a-0");
    await denied("zone-b-0", "1 pod not ready in partition 0");
    await recover("zone-a-0");
    await denied("zone-b-0", "1 pod not ready in partition 0");
    await allowed("zone-b-1");
    await untilDelayIsOver("zone-a-0");
    await allowed("zone-b-0");
    assert.equal(await reconciler.end(), 0);
    assert.ok(timeline.entries.length > 0);
  },
);
