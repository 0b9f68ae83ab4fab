/**
 * Prepares the pods of one zone that are to go, alone in its group (§4.7-§4.10).
 *
 *   the group's Lease, which notes the downscale -> the other zones -> POST to the pods -> write down the time -> allow;
 *   whatever fails from the first POST on: DELETE to the same pods -> deny. The note says how it ended when the Lease is released.
 */
import { type Clock, startStopwatch } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { type PodHttp, redactUrl } from "../../infra/pod-http.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import {
  type Current,
  mayHaveHappened,
  mayStillHappen,
  type PendingDownscale,
  type PendingDownscales,
} from "../../reconciler/downscale/pending.ts";
import { endpointsOf, type Preparation } from "../../reconciler/downscale/preparation.ts";
import { addDownscale, refuseFurther, refuseNoted } from "../../reconciler/downscale/turn.ts";
import { type Claim, type DownscaleLease, nameLease, takeDownscaleLease } from "../../reconciler/pending-downscales/downscale-lease.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { type PodCalls, preparePods, unpreparePods } from "../../reconciler/pending-downscales/pod-calls.ts";
import type { DownscaleRecord } from "./downscale-record.ts";
import type { Answer, Context } from "../http/webhook.ts";
import { refuseForOthers } from "./other-zones.ts";
import { type Candidate, deny, describeDownscale, logged } from "./find-downscale.ts";
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

export interface PrepareContext extends Context {
  /** Milliseconds that the request had left when it came, those for undoing included. */
  readonly remainingMs: number;
}

/** A downscale that is worth the trouble. */
export interface Job extends Candidate {
  /** As it was before the downscale. */
  readonly zone: Zone;
  readonly preparation: Preparation;
  readonly context: PrepareContext;
}

/** Milliseconds that undoing may take. */
export const UNDO_MS = 3000;
/** For the way of the answer. */
const ANSWER_MS = 100;

/** Under the Lease of the group, or of the StatefulSet where there is none (§4.7). */
export async function prepareZone(job: Job, tools: PrepareTools): Promise<Answer> {
  const { request, context } = job;
  const claim = claimOf(job, tools.clock);
  // From before the write: the process may be frozen at any time after it.
  const elapsed = startStopwatch(tools.clock);
  const isOurs = (): boolean => elapsed() < claim.durationMs;
  const lease = await takeDownscaleLease(tools, claim, { signal: context.signal }).catch((error: unknown) => {
    context.log.warn("the lease of the rollout group could not be taken", { error, "request.uid": request.uid });
    return undefined;
  });
  if (!lease) return deny(job, "LeaseUnavailable", "taking the lease of its rollout group failed.");
  if ("holder" in lease) return deny(job, "Busy", `statefulset ${lease.holder} is already in process of updating replicas`);
  if ("refusal" in lease) return deny(job, lease.refusal.reason, lease.refusal.message);
  return await prepareUnderLease(job, { lease, isOurs }, tools);
}

function claimOf(job: Job, clock: Clock): Claim {
  const { request, downscale, zone, context } = job;
  const { namespace = "", name = "", uid } = request;
  const { from, to } = downscale;
  const current = currentOf(job);
  return {
    namespace,
    lease: nameLease(zone.group, name),
    statefulSet: name,
    owner: zone.group ? undefined : { apiVersion: "apps/v1", kind: "StatefulSet", name, uid: zone.uid },
    uid,
    durationMs: context.remainingMs + UNDO_MS,
    refuse: (found) => refuseFurther(found[name], current, clock.now()),
    note(found) {
      const next = { uid: zone.uid, generation: zone.generation, from, to, at: formatTimestamp(clock.now()) };
      return { ...found, [name]: addDownscale(found[name], next) };
    },
  };
}

/** The zone before the downscale, as the request has it. */
function currentOf({ zone: { uid, generation }, downscale }: Job): Current {
  return { uid, generation, replicas: downscale.from };
}

interface Turn extends Pick<PodCalls, "isOurs"> {
  readonly lease: DownscaleLease;
}

async function prepareUnderLease(job: Job, { lease, isOurs }: Turn, tools: PrepareTools): Promise<Answer> {
  const { request, zone, context } = job;
  const { namespace = "", name = "" } = request;
  const { found, noted } = lease;
  // Should anything throw from here on, pods may have been told: the note stays.
  let left = noted;
  try {
    const place = { namespace, name, group: zone.group, pending: found };
    const refusal = zone.group ? await refuseForOthers(place, tools, context) : undefined;
    if (refusal) left = found;
    if (refusal) return deny(job, refusal.reason, refusal.message);
    const earlier = readEarlier(found[name], currentOf(job), tools.clock.now());
    const { answer, pods } = await prepare(job, { ...earlier, isOurs }, tools);
    left = noteOutcome(pods, name, lease);
    return answer;
  } finally {
    // A release that is slow must not make the answer late; until it is done, the Lease keeps others out.
    const released = tools.tasks.track(lease.release(left));
    await Promise.race([released, tools.clock.sleep(Math.max(0, context.deadlineAt - tools.clock.monotonic() - ANSWER_MS))]);
  }
}

/** What an earlier request for the same pods may have done, or may still do. */
interface Earlier {
  /** It was admitted and may still be stored. */
  readonly isAwaited: boolean;
  /** When it was admitted, if it has not happened. */
  readonly unsettled: string | undefined;
}

function readEarlier(earlier: PendingDownscale | undefined, current: Current, now: number): Earlier {
  if (!earlier) return { isAwaited: false, unsettled: undefined };
  return { isAwaited: mayStillHappen(earlier, current, now), unsettled: mayHaveHappened(earlier, current) ? undefined : earlier.at };
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

/** Tells the pods and writes the time down, or takes it all back (§4.8-§4.10): not where another request for the same pods was admitted and may still be stored. */
async function prepare(
  job: Job,
  { isAwaited, unsettled, isOurs }: Earlier & Pick<PodCalls, "isOurs">,
  { podHttp, clusterDomain, record }: PrepareTools,
): Promise<{ readonly answer: Answer; readonly pods: Told }> {
  const { request, downscale, preparation, context } = job;
  const { signal, log } = context;
  const onFailure = (url: string, error: unknown): void =>
    log.warn("pod refused preparation", { url: redactUrl(url), error, "request.uid": request.uid });
  const endpoints = (): Iterable<string> => endpointsOf(preparation, downscale, clusterDomain);
  const calls = { podHttp, namespace: request.namespace ?? "", endpoints, isOurs, onFailure };
  const undo = async (reason: string, message: string) => {
    const pods: Told = isAwaited ? "left" : (await unpreparePods(calls, UNDO_MS)) ? "staying" : "unknown";
    return { answer: deny(job, reason, message), pods };
  };
  if (!(await preparePods(calls, signal))) return await undo("PodsNotPrepared", "one or more pods failed to prepare for shutdown.");
  try {
    const patch = await record.save(request, unsettled, { signal });
    const message = `${describeDownscale(job)} is allowed -- all pods successfully prepared for shutdown.`;
    return { answer: { allowed: true, reason: "Prepared", message, ...(patch && { patch }), log: logged(downscale) }, pods: "going" };
  } catch (error) {
    log.warn("the downscale could not be written down", { error, "request.uid": request.uid });
    return await undo("NotRecorded", record.words.unsaved);
  }
}
