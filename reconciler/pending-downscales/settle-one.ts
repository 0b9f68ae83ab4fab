/** Ends one pending downscale, under its Lease (§13.5): writes when it happened, or takes back what never did. */
import type { Clock } from "../../infra/clock.ts";
import { absent, messageOf } from "../../infra/errors.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import type { Fence } from "../../infra/kubernetes/lease.ts";
import { configMaps, type StatefulSet, statefulSets } from "../../infra/kubernetes/resources.ts";
import type { Log } from "../../infra/log.ts";
import { type PodHttp, redactUrl } from "../../infra/pod-http.ts";
import { laterOf, type PendingDownscale } from "../downscale/pending.ts";
import { endpointsOf, readPreparation } from "../downscale/preparation.ts";
import type { Settlement } from "../downscale/settlement.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import { restoreEntry } from "../model/tracker.ts";
import type { Draft } from "../report/events.ts";
import type { Recorder } from "../report/recorder.ts";
import { type PodCalls, unpreparePods } from "./pod-calls.ts";

export interface SettleOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly podHttp: PodHttp;
  readonly clusterDomain: string;
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
}

/** One that can be settled, and its StatefulSet as it is. */
export interface Due {
  readonly zone: StatefulSet | undefined;
  readonly pending: PendingDownscale;
  readonly settlement: Settlement;
}

export interface SettleBounds extends Pick<PodCalls, "isOurs"> {
  readonly fence: Fence;
  readonly recorder: Pick<Recorder, "record">;
  readonly signal: AbortSignal;
}

/** Milliseconds that telling the pods of one StatefulSet may take; webhooks of its group are refused meanwhile. */
const TELL_MS = 5000;

/** False if a pod could not be told. Throws what the cluster says, `Conflict` if the StatefulSet has changed. */
export async function settleOne(
  { zone, pending: { from, to, at }, settlement: { happened, lastDownscale, stay } }: Due & { readonly zone: StatefulSet },
  { cluster, log, podHttp, clusterDomain, zoneTracker }: SettleOptions,
  { fence, recorder, signal, isOurs }: SettleBounds,
): Promise<boolean> {
  const { namespace = "", name = "", uid = "", resourceVersion, annotations } = zone.metadata ?? {};
  const written = annotations?.[ANNOTATIONS.lastDownscale];
  if (lastDownscale !== undefined && laterOf(lastDownscale, written) === lastDownscale && lastDownscale !== written) {
    const body = { metadata: { resourceVersion, annotations: { [ANNOTATIONS.lastDownscale]: lastDownscale } } };
    await cluster.patch(statefulSets, { namespace, name, type: "merge", body }, fence.write());
  }
  if (!happened) await forgetTracked({ namespace, name, at }, { cluster, zoneTracker }, { fence, signal });
  const count = stay.to - stay.from;
  if (count === 0) return true;
  const preparation = readPreparation(zone);
  let problem = "problem" in preparation ? preparation.problem : undefined;
  const onFailure = (url: string, error: unknown): void => void (problem ??= `${redactUrl(url)}: ${messageOf(error)}`);
  const isTold =
    !("problem" in preparation) &&
    (await unpreparePods(
      { podHttp, namespace, endpoints: () => endpointsOf(preparation, stay.to, stay.from, clusterDomain), isOurs, onFailure },
      TELL_MS,
      signal,
    ));
  const regarding = { kind: "StatefulSet" as const, namespace, name, uid };
  const what = `the downscale of ${name} from ${from} to ${to} replicas, admitted at ${at}, is not in effect`;
  const told = `${what}: its ${count} prepared pods were told that they stay`;
  const untold = `${what}, and not all of its ${count} prepared pods could be told that they stay: ${problem ?? "not in time"}`;
  const draft: Draft = isTold
    ? { regarding, type: "Normal", reason: "DownscaleUndone", message: told }
    : { regarding, type: "Warning", reason: "DownscaleNotUndone", message: untold, cause: what };
  recorder.record([draft]);
  log[isTold ? "info" : "warn"](draft.message, { namespace, statefulSet: name });
  return isTold;
}

/** Takes the time of a downscale that never happened out of the zone tracker. Throws what the cluster says. */
async function forgetTracked(
  { namespace, name, at }: { readonly namespace: string; readonly name: string; readonly at: string },
  { cluster, zoneTracker }: Pick<SettleOptions, "cluster" | "zoneTracker">,
  { fence, signal }: Pick<SettleBounds, "fence" | "signal">,
): Promise<void> {
  const ref = { namespace, name: zoneTracker };
  // Read while the Lease is ours: a webhook that has it after us may write a time that must stay.
  const found = await cluster.get(configMaps, ref, { signal }).catch(absent);
  const data = restoreEntry(found?.data, name, at);
  if (found && data) await cluster.replace(configMaps, { ...ref, body: { ...found, data } }, fence.write());
}
