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
import { readIdentity } from "../model/identity.ts";
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

type Settled = Due & { readonly zone: StatefulSet };

/** False if a pod could not be told. Throws what the cluster says, `Conflict` if the StatefulSet has changed. */
export async function settleOne(due: Settled, options: SettleOptions, bounds: SettleBounds): Promise<boolean> {
  const { zone, pending, settlement } = due;
  const { namespace, name } = readIdentity(zone.metadata ?? {});
  await recordTime(zone, settlement.lastDownscale, { cluster: options.cluster, fence: bounds.fence });
  if (!settlement.happened) await forgetTracked({ namespace, name, at: pending.at }, options, bounds);
  if (settlement.stay.to === settlement.stay.from) return true;
  const problem = await tellPods(due, options, bounds);
  const draft = draftEvent(due, problem);
  bounds.recorder.record([draft]);
  options.log[problem === undefined ? "info" : "warn"](draft.message, { namespace, statefulSet: name });
  return problem === undefined;
}

/** Writes the time of the downscale on its StatefulSet, unless that has a later one. */
async function recordTime(
  { metadata = {} }: StatefulSet,
  at: string | undefined,
  { cluster, fence }: Pick<SettleOptions, "cluster"> & Pick<SettleBounds, "fence">,
): Promise<void> {
  const { namespace, name, resourceVersion } = readIdentity(metadata);
  const written = metadata.annotations?.[ANNOTATIONS.lastDownscale];
  if (at === undefined || at === written || laterOf(at, written) !== at) return;
  const body = { metadata: { resourceVersion, annotations: { [ANNOTATIONS.lastDownscale]: at } } };
  await cluster.patch(statefulSets, { namespace, name, type: "merge", body }, fence.write());
}

/** DELETE to the pods that are prepared and stay. Resolves with what was in the way, if not all of them could be told. */
async function tellPods(
  { zone, settlement: { stay } }: Settled,
  { podHttp, clusterDomain }: SettleOptions,
  { isOurs, signal }: SettleBounds,
): Promise<string | undefined> {
  const preparation = readPreparation(zone);
  if ("problem" in preparation) return preparation.problem;
  let problem: string | undefined;
  const onFailure = (url: string, error: unknown): void => void (problem ??= `${redactUrl(url)}: ${messageOf(error)}`);
  const endpoints = (): Iterable<string> => endpointsOf(preparation, { from: stay.to, to: stay.from }, clusterDomain);
  const calls = { podHttp, namespace: preparation.namespace, endpoints, isOurs, onFailure };
  return (await unpreparePods(calls, TELL_MS, signal)) ? undefined : (problem ?? "not in time");
}

function draftEvent({ zone, pending: { from, to, at }, settlement: { stay } }: Settled, problem: string | undefined): Draft {
  const { namespace, name, uid } = readIdentity(zone.metadata ?? {});
  const regarding = { kind: "StatefulSet" as const, namespace, name, uid };
  const count = stay.to - stay.from;
  const what = `the downscale of ${name} from ${from} to ${to} replicas, admitted at ${at}, is not in effect`;
  const told = `${what}: its ${count} prepared pods were told that they stay`;
  const untold = `${what}, and not all of its ${count} prepared pods could be told that they stay: ${problem}`;
  return problem === undefined
    ? { regarding, type: "Normal", reason: "DownscaleUndone", message: told }
    : { regarding, type: "Warning", reason: "DownscaleNotUndone", message: untold, cause: what };
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
