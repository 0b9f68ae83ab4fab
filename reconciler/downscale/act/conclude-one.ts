/**
 * Concludes one pending downscale, under its Lease (§13.5): records its time if it happened, and otherwise cancels the
 * preparation.
 */
import { redactUrl } from "../../../infra/credentials.ts";
import { absent, messageOf } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { configMaps, type StatefulSet, statefulSets } from "../../../infra/kubernetes/resources.ts";
import type { Log } from "../../../infra/log.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import { laterOf, type PendingDownscale } from "../pending.ts";
import { endpointsOf, readPreparation } from "../preparation.ts";
import type { Conclusion } from "../conclusion.ts";
import { ANNOTATIONS } from "../../model/annotations.ts";
import { readIdentity } from "../../model/identity.ts";
import { restoreEntry } from "../../model/tracker.ts";
import type { Draft } from "../../report/events.ts";
import type { Recorder } from "../../report/act/recorder.ts";
import { type PodCalls, cancelPreparation } from "./pod-calls.ts";

export interface ConcludeOptions {
  readonly log: Log;
  readonly podHttp: PodHttp;
  readonly clusterDomain: string;
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
}

/** A downscale that can be concluded, and its current StatefulSet. */
export interface Due {
  readonly zone: StatefulSet | undefined;
  readonly pending: PendingDownscale;
  readonly conclusion: Conclusion;
}

/** `stop` fires when the time under the Lease of the downscale is over, too. */
export interface ConcludeContext extends Context, Pick<PodCalls, "isOurs"> {
  readonly recorder: Pick<Recorder, "emitEvents">;
}

/** Milliseconds for calls to the pods of one StatefulSet. Meanwhile the webhook refuses downscales of its group. */
const CANCEL_MS = 5000;

type DueZone = Due & { readonly zone: StatefulSet };

/**
 * Resolves with false unless every pod confirmed that its preparation was cancelled. Throws the error of the API
 * server, `Conflict` if the StatefulSet has changed.
 */
export async function concludeOne(due: DueZone, options: ConcludeOptions, context: ConcludeContext): Promise<boolean> {
  const { zone, pending, conclusion } = due;
  const { namespace, name } = readIdentity(zone.metadata ?? {});
  await recordTime(zone, conclusion.lastDownscale, context);
  if (!conclusion.happened) await restoreTracked({ namespace, name, at: pending.at }, options, context);
  if (conclusion.staying.end === conclusion.staying.start) return true;
  const problem = await cancelForStaying(due, options, context);
  const draft = draftEvent(due, problem);
  context.recorder.emitEvents([draft]);
  options.log[problem === undefined ? "info" : "warn"](draft.message, { namespace, zone: name });
  return problem === undefined;
}

/** Writes the time of the downscale on its StatefulSet, unless the StatefulSet has a later one. */
async function recordTime(
  { metadata = {} }: StatefulSet,
  at: string | undefined,
  { cluster, fence }: Pick<Context, "cluster" | "fence">,
): Promise<void> {
  const { namespace, name, resourceVersion } = readIdentity(metadata);
  const written = metadata.annotations?.[ANNOTATIONS.lastDownscale];
  if (at === undefined || at === written || laterOf(at, written) !== at) return;
  const body = { metadata: { resourceVersion, annotations: { [ANNOTATIONS.lastDownscale]: at } } };
  await cluster.patch(statefulSets, { namespace, name, type: "merge", body }, fence.write());
}

/**
 * Sends a DELETE to the prepared pods that stay. Resolves with the first problem, or undefined if every pod confirmed.
 */
async function cancelForStaying(
  { zone, conclusion: { staying } }: DueZone,
  { podHttp, clusterDomain }: ConcludeOptions,
  { clock, isOurs, stop }: ConcludeContext,
): Promise<string | undefined> {
  const preparation = readPreparation(zone);
  if ("problem" in preparation) return preparation.problem;
  let problem: string | undefined;
  const onFailure = (url: string, error: unknown): void => void (problem ??= `${redactUrl(url)}: ${messageOf(error)}`);
  const endpoints = endpointsOf(preparation, staying, clusterDomain);
  const calls = { podHttp, clock, namespace: preparation.namespace, endpoints, isOurs, onFailure };
  return (await cancelPreparation(calls, CANCEL_MS, stop)) ? undefined : (problem ?? "the time was over");
}

function draftEvent(
  { zone, pending: { from, to, at }, conclusion: { staying } }: DueZone,
  problem: string | undefined,
): Draft {
  const { namespace, name, uid } = readIdentity(zone.metadata ?? {});
  const regarding = { kind: "StatefulSet" as const, namespace, name, uid };
  const count = staying.end - staying.start;
  const subject = `the downscale of ${name} from ${from} to ${to} replicas, admitted at ${at}, is not in effect`;
  const done = `${subject}: the preparation of its ${count} pods was cancelled`;
  const failed = `${subject}, and not every one of its ${count} prepared pods confirmed that its preparation was cancelled: ${problem}`;
  return problem === undefined
    ? { regarding, type: "Normal", reason: "DownscaleUndone", message: done }
    : { regarding, type: "Warning", reason: "DownscaleNotUndone", message: failed, cause: subject };
}

/** Removes the time of a downscale that did not happen from the zone tracker. Throws the error of the API server. */
async function restoreTracked(
  { namespace, name, at }: { readonly namespace: string; readonly name: string; readonly at: string },
  { zoneTracker }: Pick<ConcludeOptions, "zoneTracker">,
  { cluster, fence, stop }: Pick<Context, "cluster" | "fence" | "stop">,
): Promise<void> {
  const ref = { namespace, name: zoneTracker };
  // Read while this process holds the Lease: a later holder may write a time that must not be removed.
  const found = await cluster.get(configMaps, ref, { signal: stop }).catch(absent);
  const data = restoreEntry(found?.data, name, at);
  if (found && data) await cluster.replace(configMaps, { ...ref, body: { ...found, data } }, fence.write());
}
