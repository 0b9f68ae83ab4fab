/** The zone tracker of an original that keeps the times of downscales in a ConfigMap, across a migration and back. */
import assert from "node:assert/strict";
import type { ConfigMap } from "../../../infra/kubernetes/resources.ts";
import type { Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import type { ZoneOptions } from "../stage/zones.ts";

type Place = Pick<Stage, "call" | "namespace" | "patchZone" | "timeline">;

const NAME = "rollout-operator-zone-tracker";
/** When the original scaled the first zone down: no other zone may follow for 12 hours. */
const earlier = new Date(Date.now() - 3_600_000).toISOString().replace(/\.\d+Z$/, "Z");

/** Two zones of a group that are prepared for a downscale at `port`. */
export const trackedZones = (port: number): ZoneOptions[] =>
  ["tracked-a", "tracked-b"].map((name) => ({
    group: "tracked",
    name,
    replicas: 2,
    labels: { "grafana.com/prepare-downscale": "true", "grafana.com/min-time-between-zones-downscale": "12h" },
    annotations: {
      "grafana.com/prepare-downscale-http-path": "prepare",
      "grafana.com/prepare-downscale-http-port": String(port),
    },
  }));

const maps = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;

/** As the original writes it. */
export const putTracker = ({ call, namespace }: Place): Promise<unknown> =>
  call("POST", maps(namespace), {
    metadata: { name: NAME },
    data: { "tracked-a": JSON.stringify({ lastDownscaled: earlier }) },
  });

/** As the original reads it. */
export async function readTracked({ call, namespace }: Place): Promise<string | undefined> {
  const { data } = await call<ConfigMap>("GET", `${maps(namespace)}/${NAME}`);
  return (JSON.parse(data?.["tracked-a"] ?? "{}") as { lastDownscaled?: string }).lastDownscaled;
}

/** Zonewise refuses the zone that the original's time forbids, and leaves its own times where the original looks. */
export async function playTracker(place: Place): Promise<void> {
  const scale = (name: string, replicas: number): Promise<void> => place.patchZone(name, { spec: { replicas } });
  const time = earlier.replace("T", " ").replace("Z", "");
  await assert.rejects(scale("tracked-b", 1), new RegExp(`statefulset tracked-a was downscaled at ${time} `));
  // A denial that will pass, while the machine is slow, is tried again.
  await until("the zone that was last is scaled down", () => scale("tracked-a", 1).then(() => true));
  const written = await readTracked(place);
  assert.ok(written !== undefined && written > earlier, written);
}
