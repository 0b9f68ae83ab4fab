/**
 * Prepares the pods of one zone that are to go, alone in its group (§4.7-§4.10).
 *
 *   the group's Lease, which notes the downscale -> the other zones -> POST to the pods -> write down the time -> allow;
 *   whatever fails from the first POST on: DELETE to the same pods -> deny. The note says how it ended when the Lease is released.
 */
import { type Clock, startStopwatch } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { type PodHttp, redactUrl } from "../../infra/pod-http.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import type { Refusal } from "../../reconciler/downscale/decide.ts";
import { mayHaveHappened, mayStillHappen, type PendingDownscales } from "../../reconciler/downscale/pending.ts";
import { endpointsOf, type Preparation } from "../../reconciler/downscale/preparation.ts";
import { addDownscale, refuseFurther, refuseNoted } from "../../reconciler/downscale/turn.ts";
import { type DownscaleLease, nameLease, takeDownscaleLease } from "../../reconciler/pending-downscales/downscale-lease.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { type PodCalls, preparePods, unpreparePods } from "../../reconciler/pending-downscales/pod-calls.ts";
import type { DownscaleRecord } from "./downscale-record.ts";
import type { AdmissionRequest, Answer, Context } from "../http/webhook.ts";
import { refuseForOthers } from "./other-zones.ts";
import { describeDownscale, type Downscale } from "./find-downscale.ts";
import type { BackgroundTasks } from "../http/background-tasks.ts";

export interface PrepareTools {
  readonly cluster: Cluster;
  readonly podHttp: PodHttp;
  readonly clock: Clock;
  readonly clusterDomain: string;
  readonly record: DownscaleRecord;
  /** What goes on after the answer, and has to be over before the process is. */
  readonly tasks: BackgroundTasks;
}

/** A downscale that is worth the trouble. */
export interface Job {
  readonly request: AdmissionRequest;
  readonly downscale: Downscale;
  readonly zone: StatefulSet;
  readonly preparation: Preparation;
}

/** Milliseconds that undoing may take. */
export const UNDO_MS = 3000;
/** For the way of the answer. */
const ANSWER_MS = 100;

/** Under the Lease of the group, or of the StatefulSet where there is none (§4.7). */
export async function prepareZone(job: Job, tools: PrepareTools, context: Context, remainingMs: number): Promise<Answer> {
  const { request, downscale, zone } = job;
  const { cluster, clock } = tools;
  const { namespace = "", name = "", uid } = request;
  const group = zone.metadata?.labels?.[LABELS.rolloutGroup];
  const generation = zone.metadata?.generation ?? 0;
  const note = (found: PendingDownscales): PendingDownscales => {
    const { from, to } = downscale;
    const next = { uid: current.uid, generation, from, to, at: formatTimestamp(clock.now()) };
    return { ...found, [name]: addDownscale(found[name], next) };
  };
  const current = { uid: zone.metadata?.uid ?? "", generation, replicas: downscale.from };
  const refuse = (found: PendingDownscales): Refusal | undefined => refuseFurther(found[name], current, clock.now());
  const durationMs = remainingMs + UNDO_MS;
  const owner = group ? undefined : { apiVersion: "apps/v1", kind: "StatefulSet", name, uid: current.uid };
  const claim = { namespace, lease: nameLease(group, name), statefulSet: name, owner, uid, durationMs, refuse, note };
  // From before the write: the process may be frozen at any time after it.
  const elapsed = startStopwatch(clock);
  const isOurs = (): boolean => elapsed() < claim.durationMs;
  let lease: Awaited<ReturnType<typeof takeDownscaleLease>>;
  try {
    lease = await takeDownscaleLease(cluster, claim, clock, { signal: context.signal });
  } catch (error) {
    context.log.warn("the lease of the rollout group could not be taken", { error, "request.uid": uid });
    return deny(request, downscale, "LeaseUnavailable", "taking the lease of its rollout group failed.");
  }
  if ("holder" in lease) return deny(request, downscale, "Busy", `statefulset ${lease.holder} is already in process of updating replicas`);
  if ("refusal" in lease) return deny(request, downscale, lease.refusal.reason, lease.refusal.message);
  const { found, noted } = lease;
  // Should anything throw from here on, pods may have been told: the note stays.
  let left = noted;
  try {
    const refusal = group ? await refuseForOthers({ namespace, name, group, pending: found }, tools, context) : undefined;
    if (refusal) left = found;
    if (refusal) return deny(request, downscale, refusal.reason, refusal.message);
    const earlier = found[name];
    const isAwaited = earlier && mayStillHappen(earlier, current, clock.now());
    const unsettled = earlier && !mayHaveHappened(earlier, current) ? earlier.at : undefined;
    const { answer, pods } = await prepare(job, { isAwaited, unsettled, isOurs }, tools, context);
    left = noteOutcome(pods, name, lease);
    return answer;
  } finally {
    // A release that is slow must not make the answer late; until it is done, the Lease keeps others out.
    const released = tools.tasks.track(lease.release(left));
    await Promise.race([released, clock.sleep(Math.max(0, context.deadlineAt - clock.monotonic() - ANSWER_MS))]);
  }
}

/** What became of the pods: they go; they have all been told that they stay; not all of them have; or nobody told them, as an earlier request may take them. */
type Told = "going" | "staying" | "unknown" | "left";

function noteOutcome(pods: Told, name: string, { found, noted }: Pick<DownscaleLease, "found" | "noted">): PendingDownscales {
  const pending = noted[name];
  if (!pending || pods === "staying") return found;
  if (pods === "going") return noted;
  if (pods === "unknown") return { ...noted, [name]: refuseNoted(found[name], pending) };
  return { ...noted, [name]: { ...pending, at: found[name]?.at ?? pending.at } };
}

interface Around extends Pick<PodCalls, "isOurs"> {
  /** An earlier request for the same pods was admitted and may still be stored. */
  readonly isAwaited: boolean | undefined;
  /** When an earlier one was admitted that has not happened. */
  readonly unsettled: string | undefined;
}

/** Tells the pods and writes the time down, or takes it all back (§4.8-§4.10): not where another request for the same pods was admitted and may still be stored. */
async function prepare(
  { request, downscale, preparation }: Job,
  { isAwaited, unsettled, isOurs }: Around,
  tools: PrepareTools,
  { signal, log }: Context,
): Promise<{ readonly answer: Answer; readonly pods: Told }> {
  const { from, to } = downscale;
  const { podHttp, clusterDomain, record } = tools;
  const onFailure = (url: string, error: unknown): void =>
    log.warn("pod refused preparation", { url: redactUrl(url), error, "request.uid": request.uid });
  const endpoints = (): Iterable<string> => endpointsOf(preparation, from, to, clusterDomain);
  const calls = { podHttp, namespace: request.namespace ?? "", endpoints, isOurs, onFailure };
  const undo = async (reason: string, message: string) => {
    const pods: Told = isAwaited ? "left" : (await unpreparePods(calls, UNDO_MS)) ? "staying" : "unknown";
    return { answer: deny(request, downscale, reason, message), pods };
  };
  if (!(await preparePods(calls, signal))) return await undo("PodsNotPrepared", "one or more pods failed to prepare for shutdown.");
  try {
    const patch = await record.save(request, unsettled, { signal });
    const message = `${describeDownscale(request, from, to)} is allowed -- all pods successfully prepared for shutdown.`;
    return { answer: { allowed: true, reason: "Prepared", message, ...(patch && { patch }), log: replicas(downscale) }, pods: "going" };
  } catch (error) {
    log.warn("the downscale could not be written down", { error, "request.uid": request.uid });
    return await undo("NotRecorded", record.words.unsaved);
  }
}

export function deny(request: AdmissionRequest, downscale: Downscale, reason: string, why: string): Answer {
  const message = `${describeDownscale(request, downscale.from, downscale.to)} is not allowed because ${why}`;
  return { allowed: false, reason, message, log: replicas(downscale) };
}

function replicas({ from, to }: Downscale): Readonly<Record<string, number>> {
  return { "object.old_replicas": from, "object.new_replicas": to };
}
