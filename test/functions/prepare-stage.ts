/** prepare-downscale with its pods in either mode, and its stored records. */
import type { TestContext } from "node:test";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import {
  type DownscaleRecord,
  recordInAnnotation,
  recordInTracker,
} from "../../functions/downscale/downscale-record.ts";
import type { Webhook } from "../../functions/http/webhook.ts";
import { type Clock, systemClock } from "../../infra/clock.ts";
import { type PendingDownscales, readPending } from "../../reconciler/downscale/pending.ts";
import { type Pods, playPods, type Script, setStage, type Stage, startPrepareDownscale } from "./stage.ts";
import { type BackgroundTasks, createBackgroundTasks } from "../../functions/http/rim.ts";
import { add } from "../builders.ts";

export const TRACKER = "tracker";
export const A = "ingester-zone-a";
export const B = "ingester-zone-b";
export const MIN_TIME = "grafana.com/min-time-between-zones-downscale";
export const LAST = "grafana.com/last-downscale";

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
  readonly tasks: BackgroundTasks;
}

export async function play(t: TestContext, recordOf: RecordOf, script?: Script): Promise<Play> {
  const stage = await setStage(t);
  const pods = await playPods(t, script);
  const tasks = createBackgroundTasks();
  const tools = { cluster: stage.cluster, podHttp: pods.podHttp, clock: systemClock, record: recordOf(stage), tasks };
  return { ...stage, ...pods, tasks, webhook: startPrepareDownscale(tools) };
}

export function tracked({ emulator }: Stage): Record<string, string> {
  return (
    (emulator.store.get("configmaps", "default", TRACKER) as unknown as { data?: Record<string, string> } | undefined)
      ?.data ?? {}
  );
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

export const because = (zone: string, why: string, to = 1): string =>
  `downscale of statefulsets/${zone} in default from 3 to ${to} replicas is not allowed because ${why}`;

/** No zone was ever scaled down, in either mode. */
export function settle({ emulator }: Stage, recordOf: RecordOf): void {
  if (recordOf === inTracker) add(emulator.store, "ConfigMap", TRACKER, { data: {} });
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
