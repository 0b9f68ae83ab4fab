/** prepare-downscale with its pods in either mode, and its stored records. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import {
  type DownscaleRecord,
  recordInAnnotation,
  recordInTracker,
} from "../../functions/downscale/downscale-record.ts";
import type { Answer, Webhook } from "../../functions/http/webhook.ts";
import { type Clock, systemClock } from "../../infra/clock.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { type PendingDownscales, readPending } from "../../reconciler/downscale/pending.ts";
import type { Draft } from "../../reconciler/report/events.ts";
import { type Pods, playPods, type Script, setStage, type Stage, startPrepareDownscale } from "./stage.ts";
import { type BackgroundTasks, createBackgroundTasks } from "../../functions/http/rim.ts";
import { add } from "../builders.ts";

export const TRACKER = "tracker";
export const A = "ingester-zone-a";
export const B = "ingester-zone-b";
export const MIN_TIME = "grafana.com/min-time-between-zones-downscale";
export const LAST = "grafana.com/last-downscale";
export const HOUR = 3_600_000;

export type RecordOf = (stage: Pick<Stage, "cluster"> & { readonly clock?: Clock }) => DownscaleRecord;

export const inAnnotation: RecordOf = ({ cluster, clock = systemClock }) =>
  recordInAnnotation({ cluster, clock }, TRACKER);
export const inTracker: RecordOf = ({ cluster, clock = systemClock }) => recordInTracker({ cluster, clock }, TRACKER);

export const MODES: readonly [string, RecordOf][] = [
  ["annotation mode", inAnnotation],
  ["tracker mode", inTracker],
];

export interface Play extends Stage, Pods {
  readonly webhook: Webhook;
  readonly record: DownscaleRecord;
  readonly tasks: BackgroundTasks;
  /** The Events that were emitted. */
  readonly drafts: readonly Draft[];
}

export async function play(t: TestContext, recordOf: RecordOf, script?: Script): Promise<Play> {
  const stage = await setStage(t);
  const pods = await playPods(t, script);
  const record = recordOf(stage);
  const tools = {
    cluster: stage.cluster,
    podHttp: pods.podHttp,
    clock: systemClock,
    clusterDomain: "cluster.local.",
    record,
  };
  const tasks = createBackgroundTasks();
  const drafts: Draft[] = [];
  const emitEvents = (emitted: readonly Draft[]): void => void drafts.push(...emitted);
  const webhook = startPrepareDownscale({ ...tools, tasks, emitEvents });
  return { ...stage, ...pods, record, tasks, drafts, webhook };
}

/** The times of the tracker, as written; a zone without an entry was never scaled down. */
export function track({ emulator }: Stage, times: Readonly<Record<string, number | string>>): void {
  const data = Object.fromEntries(
    Object.entries(times).map(([zone, at]) => [
      zone,
      typeof at === "string" ? at : JSON.stringify({ lastDownscaled: formatTimestamp(at) }),
    ]),
  );
  add(emulator.store, "ConfigMap", TRACKER, { data });
}

export function tracked({ emulator }: Stage): Record<string, string> {
  return (
    (emulator.store.get("configmaps", "default", TRACKER) as unknown as { data?: Record<string, string> } | undefined)
      ?.data ?? {}
  );
}

/** The time of the zone's last downscale: in the patch of the answer, on the object, or in the tracker. */
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

/** The pending downscales in the Leases. */
export function pendingOf({ emulator }: Stage): PendingDownscales {
  const annotations = emulator.store
    .list("leases.coordination.k8s.io", "default")
    .map((lease) => readPending(lease.metadata.annotations?.["zonewise/pending-downscales"]));
  return Object.assign({}, ...annotations) as PendingDownscales;
}

/** Pods that were prepared and whose preparation was not cancelled. */
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

/** Removes the time of the zone's last downscale, in either mode. */
export function settle(stage: Stage, recordOf: RecordOf): void {
  if (recordOf === inTracker) track(stage, {});
}

export interface Shrinking {
  /** Whether the StatefulSet controller has observed the change; true by default. */
  readonly observed?: boolean;
  /** `status.replicas`. */
  readonly status?: number;
  /** Ordinals of pods that terminate. */
  readonly terminating?: readonly number[];
}

/** Scales the zone to 2 replicas, with the given progress of the StatefulSet controller. */
export function shrink(
  { emulator }: Stage,
  zone: StatefulSet,
  { observed = true, status, terminating = [] }: Shrinking,
): void {
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
    // A pod on a node is deleted by its kubelet.
    store.update("pods", { ...pod, spec: { nodeName: "node" } } as never);
    store.remove("pods", "default", `${name}-${ordinal}`, { gracePeriodSeconds: 30 });
  }
}
