/** prepare-downscale with its pods, in either mode, and where it wrote down what it did. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { type DownscaleRecord, recordInAnnotation, recordInTracker } from "../../functions/downscale/downscale-record.ts";
import type { Answer, Webhook } from "../../functions/http/webhook.ts";
import { createPrepareDownscale } from "../../functions/downscale/prepare-downscale.ts";
import { type Clock, systemClock } from "../../infra/clock.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { type PendingDownscales, readPending } from "../../reconciler/downscale/pending.ts";
import { type Pods, playPods, type Script, setStage, type Stage } from "./stage.ts";
import { createBackgroundTasks } from "../../functions/http/background-tasks.ts";

export const TRACKER = "tracker";
export const A = "ingester-zone-a";
export const B = "ingester-zone-b";
export const MIN_TIME = "grafana.com/min-time-between-zones-downscale";
export const LAST = "grafana.com/last-downscale";
export const HOUR = 3_600_000;

export type RecordOf = (stage: Pick<Stage, "cluster"> & { readonly clock?: Clock }) => DownscaleRecord;

export const inAnnotation: RecordOf = ({ cluster, clock = systemClock }) => recordInAnnotation({ cluster, clock }, TRACKER);
export const inTracker: RecordOf = ({ cluster, clock = systemClock }) => recordInTracker({ cluster, clock }, TRACKER);

export const MODES: readonly [string, RecordOf][] = [
  ["annotation mode", inAnnotation],
  ["tracker mode", inTracker],
];

export interface Play extends Stage, Pods {
  readonly webhook: Webhook;
  readonly record: DownscaleRecord;
}

export async function play(t: TestContext, recordOf: RecordOf, script?: Script): Promise<Play> {
  const stage = await setStage(t);
  const pods = await playPods(t, script);
  const record = recordOf(stage);
  const tools = { cluster: stage.cluster, podHttp: pods.podHttp, clock: systemClock, clusterDomain: "cluster.local.", record };
  return { ...stage, ...pods, record, webhook: createPrepareDownscale({ ...tools, tasks: createBackgroundTasks() }) };
}

/** The times of the tracker, as written; a zone without an entry was never scaled down. */
export function track({ emulator }: Stage, times: Readonly<Record<string, number | string>>): void {
  const data = Object.fromEntries(
    Object.entries(times).map(([zone, at]) => [
      zone,
      typeof at === "string" ? at : JSON.stringify({ lastDownscaled: formatTimestamp(at) }),
    ]),
  );
  emulator.store.create("configmaps", {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: TRACKER, namespace: "default" },
    data,
  });
}

export function tracked({ emulator }: Stage): Record<string, string> {
  return (emulator.store.get("configmaps", "default", TRACKER) as unknown as { data?: Record<string, string> } | undefined)?.data ?? {};
}

/** When the zone was last scaled down, wherever that is: in the patch of the answer, on the object, or in the tracker. */
export function recorded(stage: Stage, zone: string, answer?: Answer): string | undefined {
  const [patch] = (answer?.patch ?? []) as { op: string; path: string; value: string }[];
  if (patch) {
    assert.equal(patch.op, "add");
    assert.equal(patch.path, "/metadata/annotations/grafana.com~1last-downscale");
    return patch.value;
  }
  const entry = tracked(stage)[zone];
  if (entry !== undefined) return (JSON.parse(entry) as { lastDownscaled: string }).lastDownscaled;
  return stage.emulator.store.get("statefulsets.apps", "default", zone)?.metadata.annotations?.[LAST];
}

/** The downscales that the Leases note as pending. */
export function pendingOf({ emulator }: Stage): PendingDownscales {
  const annotations = emulator.store
    .list("leases.coordination.k8s.io", "default")
    .map((lease) => readPending(lease.metadata.annotations?.["zonewise/pending-downscales"]));
  return Object.assign({}, ...annotations) as PendingDownscales;
}

/** Pods that were told that they are to go, and never that they are not. */
export function leftPrepared(seen: readonly string[]): Set<string> {
  const prepared = new Set<string>();
  for (const [method, pod = ""] of seen.map((call) => call.split(" "))) {
    if (method === "POST") prepared.add(pod);
    else prepared.delete(pod);
  }
  return prepared;
}

export function isRecent(timestamp: string | undefined): void {
  const age = Date.now() - Date.parse(timestamp ?? "");
  assert.ok(age > -1000 && age < 30_000, `${timestamp} is not now`);
}

export const because = (zone: string, why: string, to = 1): string =>
  `downscale of statefulsets/${zone} in default from 3 to ${to} replicas is not allowed because ${why}`;

/** So that a zone counts as never scaled down, in either mode. */
export function settle(stage: Stage, recordOf: RecordOf): void {
  if (recordOf === inTracker) track(stage, {});
}

export interface Shrinking {
  /** The StatefulSet controller has seen the change; yes unless said. */
  readonly observed?: boolean;
  /** `status.replicas`. */
  readonly status?: number;
  /** Ordinals of pods that terminate. */
  readonly terminating?: readonly number[];
}

/** Gives the zone 2 replicas, as far as the StatefulSet controller has got with it. */
export function shrink({ emulator }: Stage, zone: StatefulSet, { observed = true, status, terminating = [] }: Shrinking): void {
  const { store } = emulator;
  const name = zone.metadata?.name ?? "";
  const changed = store.update("statefulsets.apps", { ...zone, spec: { ...zone.spec, replicas: 2 } } as never);
  if (observed) {
    const counts = { replicas: status, readyReplicas: status, updatedReplicas: status };
    const now = { ...zone.status, ...counts, observedGeneration: changed.metadata.generation };
    store.update("statefulsets.apps", { ...changed, status: now });
  }
  for (const ordinal of terminating) {
    const pod = store.get("pods", "default", `${name}-${ordinal}`);
    // A pod on a node goes when its kubelet says so.
    store.update("pods", { ...pod, spec: { nodeName: "node" } } as never);
    store.remove("pods", "default", `${name}-${ordinal}`, { gracePeriodSeconds: 30 });
  }
}
