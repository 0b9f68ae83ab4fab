import assert from "node:assert/strict";
import { startPodServer } from "../stage/pods.ts";
import { createReplicaTemplate } from "../stage/replica-template.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const NAMES = ["zone-a", "zone-b", "zone-c"];
const DELAY_MS = 5000;

/** A recorded change of `spec.replicas`. */
interface Scaled {
  readonly zone: string;
  readonly from: number;
  readonly to: number;
  readonly at: number;
  /** The zones' status.readyReplicas at that time. */
  readonly ready: readonly number[];
}

/** Plays `change`; resolves with the changes of replicas from then on, once every zone has `replicas` ready pods. */
async function untilScaled(
  { timeline: { statefulSets, until } }: Stage,
  replicas: number,
  change: () => Promise<unknown>,
): Promise<Scaled[]> {
  const last = new Map(NAMES.map((zone) => [zone, statefulSets.get(zone)?.spec?.replicas ?? 0]));
  const scaled: Scaled[] = [];
  const check = (): boolean => {
    const ready = NAMES.map((zone) => statefulSets.get(zone)?.status?.readyReplicas ?? 0);
    for (const zone of NAMES) {
      const [from = 0, to = 0] = [last.get(zone), statefulSets.get(zone)?.spec?.replicas];
      if (from !== to) scaled.push({ zone, from, to, at: Date.now(), ready });
      last.set(zone, to);
    }
    return NAMES.every((zone) => {
      const { spec, status } = statefulSets.get(zone) ?? {};
      return spec?.replicas === replicas && status?.readyReplicas === replicas && status.replicas === replicas;
    });
  };
  await Promise.all([until(`every zone with ${replicas} replicas`, check), change()]);
  return scaled;
}

scenario("three zones mirror a ReplicaTemplate that is scaled up, and down with a delay of 5 s", async (stage) => {
  const pods = await startPodServer();
  try {
    const template = await createReplicaTemplate(stage, stage.namespace, "ingester");
    const annotations = {
      "grafana.com/rollout-mirror-replicas-from-resource-name": "ingester",
      "grafana.com/rollout-mirror-replicas-from-resource-kind": "ReplicaTemplate",
      "grafana.com/rollout-mirror-replicas-from-resource-api-version": "rollout-operator.grafana.com/v1",
      "grafana.com/rollout-delayed-downscale": `${DELAY_MS / 1000}s`,
      "grafana.com/rollout-prepare-delayed-downscale-url": `http://pod:${pods.port}/prepare-delayed-downscale`,
    };
    await stage.create(NAMES.map((name) => ({ group: "ingester", name, annotations })));
    const reconciler = stage.start({ ...pods.env, RECONCILE_INTERVAL: "1s" });

    const scale = (replicas: number) => () => stage.call("PATCH", `${template}/scale`, { spec: { replicas } });
    const up = await untilScaled(stage, 5, scale(5));
    assert.deepEqual(
      up.map(({ zone, to }) => [zone, to]).toSorted(),
      NAMES.map((zone) => [zone, 5]),
    );
    assert.deepEqual([...pods.everPrepared], [], "an upscale prepares no pod");
    await until("the replicas are written back to its status", async () => {
      const { status } = await stage.call<{ status?: { replicas?: number } }>("GET", template);
      return status?.replicas === 5;
    });

    const requestedAt = Date.now();
    const down = await untilScaled(stage, 2, scale(2));
    assert.deepEqual([...new Set(down.map(({ zone }) => zone))].toSorted(), NAMES);
    for (const { zone, from, to, at } of down) {
      assert.ok(to < from && to >= 2, `${zone} from ${from} to ${to}`);
      // The pods report whole seconds.
      assert.ok(
        at - requestedAt >= DELAY_MS - 1000,
        `${zone} was scaled down ${at - requestedAt} ms after the request`,
      );
    }
    assert.deepEqual(
      [...pods.everPrepared].toSorted(),
      NAMES.flatMap((zone) => [2, 3, 4].map((i) => `${zone}-${i}`)),
    );
    // Its end waits for the Events that are on their way.
    assert.equal(await reconciler.end(), 0);
    const holds = await stage.events("DelayNotReached");
    assert.ok(
      holds.some(({ message }) =>
        /^zone-\w waits: zone-\w-4 was prepared \ds ago, \ds left of 5s$/.test(message ?? ""),
      ),
    );
    assert.ok((await stage.events("ZoneScaled")).length >= 6);
  } finally {
    pods.close();
  }
});
