/**
 * Prepares the pods that a downscale of one zone removes, one zone of a group at a time (§4.7-§4.10).
 *
 *   take the group's Lease, which records the downscale -> check the other zones -> reserve the pods on their budget
 *     -> POST to the pods -> record the time -> allow;
 *   a failure after the first POST: DELETE to the same pods, release the reservation -> deny. The release of the Lease records the outcome.
 */
import { type Clock, startStopwatch } from "../../infra/clock.ts";
import { ownValue } from "../../infra/json.ts";
import { redactUrl } from "../../infra/credentials.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { describePodFailure, type PodHttp } from "../../infra/pod-http.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { type DownscaleRefusal, refuseByHealth } from "../../reconciler/downscale/decide-admission.ts";
import {
  addDownscale,
  type Current,
  findAdmitted,
  lastDownscaleOf,
  laterOf,
  markRefused,
  mayHaveHappened,
  mayStillHappen,
  type PendingDownscale,
  type PendingDownscales,
  refuseFurther,
} from "../../reconciler/downscale/pending.ts";
import { endpointsOf, type Preparation } from "../../reconciler/downscale/preparation.ts";
import {
  type DownscaleClaim,
  type DownscaleLease,
  nameLease,
  takeDownscaleLease,
} from "../../reconciler/downscale/act/downscale-lease.ts";
import type { Reason } from "../../reconciler/model/decision.ts";
import { findExcess } from "../../reconciler/model/refused-group.ts";
import type { OrdinalRange } from "../../reconciler/model/order.ts";
import type { GatheredGroup, Zone } from "../../reconciler/model/zone.ts";
import { refuseByTime, timedOrphans } from "../../reconciler/scaling/min-time.ts";
import { losesNothing } from "../../reconciler/scaling/steady.ts";
import { gatherGroup, gatherGroupZones } from "../../reconciler/snapshot/gather.ts";
import { type PodCalls, postPrepare, cancelPreparation } from "../../reconciler/downscale/act/pod-calls.ts";
import type { Reserver } from "../../reconciler/budget/act/reserve.ts";
import type { Recorder } from "../../reconciler/report/act/reporter.ts";
import type { DownscaleRecord } from "./downscale-record.ts";
import type { Answer, RequestContext } from "../http/webhook.ts";
import { type Candidate, denyDownscale, describeDownscale, replicaFields } from "./find-downscale.ts";
import type { BackgroundTasks } from "../http/rim.ts";

export interface PrepareTools {
  readonly cluster: Cluster;
  readonly podHttp: PodHttp;
  readonly clock: Clock;
  readonly clusterDomain: string;
  readonly record: DownscaleRecord;
  readonly reserver: Pick<Reserver, "reserveDownscale" | "release">;
  readonly emitEvents: Recorder["emitEvents"];
  /** Tasks that continue after the answer and must end before the process exits. */
  readonly tasks: BackgroundTasks;
}

export interface PrepareContext extends RequestContext {
  /** Milliseconds between the arrival of the request and its deadline. */
  readonly remainingMs: number;
}

export interface PrepareRequest extends Candidate {
  readonly zone: Zone;
  readonly preparation: Preparation;
  readonly context: PrepareContext;
}

const CANCEL_MS = 3000;
/** Milliseconds to release the reservations of a downscale that is denied. */
const RELEASE_MS = 3000;
/** Milliseconds that are kept free for sending the answer. */
export const ANSWER_MS = 100;

/** Prepares the pods under the Lease of the group, or of a StatefulSet without a group (§4.7). */
export async function prepareZone(prepareRequest: PrepareRequest, tools: PrepareTools): Promise<Answer> {
  const { request, context } = prepareRequest;
  const claim = claimOf(prepareRequest, tools.clock);
  // Starts before the write: the process may be suspended at any time after it.
  const elapsed = startStopwatch(tools.clock);
  const isOurs = (): boolean => elapsed() < claim.durationMs;
  const lease = await takeDownscaleLease(tools, claim, { signal: context.signal }).catch((error: unknown) => {
    context.log.warn("the downscale Lease of the rollout group could not be taken", { ...logged(request), error });
    return undefined;
  });
  if (!lease) return denyDownscale(prepareRequest, "LeaseUnavailable", "taking the lease of its rollout group failed.");
  if ("holder" in lease)
    return denyDownscale(
      prepareRequest,
      "Busy",
      `statefulset ${lease.holder} is already in process of updating replicas`,
    );
  if ("refusal" in lease) return denyDownscale(prepareRequest, lease.refusal.reason, lease.refusal.message);
  // After a fault, pods may be prepared: the downscale stays recorded.
  let pending: PrepareResult["pending"] = lease.recorded;
  try {
    const judged = await judge(prepareRequest, { lease, isOurs }, tools);
    ({ pending } = judged);
    return judged.answer;
  } finally {
    await releaseInTime({ lease, pending, deadlineAt: context.deadlineAt - ANSWER_MS }, tools);
  }
}

const logged = ({ namespace, name, uid }: PrepareRequest["request"]) => ({ namespace, zone: name, "request.uid": uid });

function claimOf(prepareRequest: PrepareRequest, clock: Clock): DownscaleClaim {
  const { request, downscale, zone, context } = prepareRequest;
  const { namespace = "", name = "", uid } = request;
  const { from, to } = downscale;
  const current = currentOf(prepareRequest);
  return {
    namespace,
    lease: nameLease(zone.group, name),
    statefulSet: name,
    owner: zone.group ? undefined : { apiVersion: "apps/v1", kind: "StatefulSet", name, uid: zone.uid },
    uid,
    durationMs: context.remainingMs + CANCEL_MS,
    refuse: (found) => refuseFurther(ownValue(found, name), current, clock.now()),
    updatePending(found) {
      const { uid: zoneUid, generation } = zone;
      const next = { uid: zoneUid, generation, from, to, prepared: leavingOf(prepareRequest) };
      return { ...found, [name]: addDownscale(ownValue(found, name), { ...next, at: formatTimestamp(clock.now()) }) };
    },
  };
}

/** The ordinals of the pods that go. */
const leavingOf = ({ zone: { firstOrdinal }, downscale: { from, to } }: PrepareRequest): OrdinalRange => ({
  start: firstOrdinal + to,
  end: firstOrdinal + from,
});

/** The zone before the downscale, as the request shows it. */
function currentOf({ zone: { uid, generation }, downscale }: PrepareRequest): Current {
  return { uid, generation, replicas: downscale.from };
}

interface TakenLease extends Pick<PodCalls, "isOurs"> {
  readonly lease: DownscaleLease;
}

/** The answer, and the downscales that the Lease records when it is released. */
interface PrepareResult {
  readonly answer: Answer;
  readonly pending: PendingDownscales | Promise<PendingDownscales>;
}

async function judge(
  prepareRequest: PrepareRequest,
  { lease, isOurs }: TakenLease,
  tools: PrepareTools,
): Promise<PrepareResult> {
  const { zone, context, downscale } = prepareRequest;
  const { found } = lease;
  const refusal = zone.group ? await refuseForOtherZones(prepareRequest, found, tools) : undefined;
  if (refusal) return { answer: denyDownscale(prepareRequest, refusal.reason, refusal.message), pending: found };
  // No other zone loses pods until the change is stored.
  const { deadlineAt, signal } = context;
  const bounds = { deadlineAt: deadlineAt - ANSWER_MS, signal };
  const reserved = await tools.reserver.reserveDownscale({ zone, to: downscale.to, forced: false, ...bounds });
  if (reserved.outcome !== "allowed") {
    const { reason, message } = reserved.verdict;
    return { answer: denyDownscale(prepareRequest, reason, `${message}.`), pending: found };
  }
  const { answer, pods } = await prepare(prepareRequest, { earlier: ownValue(found, zone.name), isOurs }, tools);
  const pending = pods.then(async (outcome) => {
    if (!answer.allowed)
      await Promise.all(reserved.handles.map((one) => tools.reserver.release(one, { deadlineMs: RELEASE_MS })));
    return recordOutcome(outcome, zone.name, lease);
  });
  return { answer, pending };
}

/**
 * The refusal of a downscale that must wait for another zone, or that cannot be decided; undefined if it may proceed.
 */
async function refuseForOtherZones(
  { zone: own, downscale, context: { signal, log } }: PrepareRequest,
  pending: PendingDownscales,
  { cluster, clock, record }: PrepareTools,
): Promise<DownscaleRefusal | undefined> {
  const call = { signal };
  const source = { cluster };
  const refuseOnError = (reason: DownscaleRefusal["reason"], message: string) => (error: unknown) => {
    log.warn(message, { namespace: own.namespace, group: own.group, zone: own.name, error });
    return { reason, message };
  };
  const group = await gatherGroupZones(own, source, call).catch(
    refuseOnError("GroupUnknown", "finding other statefulsets failed."),
  );
  if ("reason" in group) return group;
  const excess = findExcess(own, group);
  if (excess) return { reason: excess.reason, message: `${excess.message}.` };
  const recorded = await record
    .load(own.namespace, group, call)
    .catch(refuseOnError("DownscalesUnknown", "loading zones failed."));
  if ("reason" in recorded) return recorded;
  const others = group.filter(({ name }) => name !== own.name);
  const now = clock.now();
  const refuseEarly = (zones: readonly Zone[]): DownscaleRefusal | undefined => {
    const times = zones.map((zone) => {
      const { name, scaling, orphaned } = zone;
      const admitted = lastDownscaleOf(ownValue(pending, name), zone, now);
      return {
        name,
        lastDownscale: laterOf(laterOf(scaling.lastDownscale, recorded.get(name)), admitted),
        // Its own minimum time is gone with its StatefulSet; zones of a group have the same one as a rule.
        minTime: orphaned === "gone" ? own.scaling.minTime : scaling.minTime,
      };
    });
    return refuseByTime(times, now, record.messages.unreadable);
  };
  const refusal = refuseEarly(others);
  if (refusal) return refusal;
  const admitted = findAdmitted(pending, others, now);
  if (admitted) return { reason: "OtherZoneNotReady", message: admitted.description };
  /** A downscale that removes only pods that serve nothing need not wait for other zones. */
  const refuseUnlessIdle = (found: GatheredGroup): DownscaleRefusal | undefined => {
    const shrinking = found.zones.find(({ uid }) => uid === own.uid);
    if (shrinking && losesNothing(shrinking, downscale.to, now)) return undefined;
    return refuseByHealth(found, { zone: own, size: downscale.to, now });
  };
  return await gatherGroup(group, source, call).then(
    (found) => refuseEarly(timedOrphans(found)) ?? refuseUnlessIdle(found),
    refuseOnError("ZonesUnknown", "an error occurred while checking whether StatefulSets have non-updated replicas"),
  );
}

/**
 * Releases the Lease once it is known what it is to record. Undoing preparations and a slow release may take longer than
 * the answer has time: then they continue after it, and other requests cannot take the Lease until they are done.
 */
async function releaseInTime(
  {
    lease,
    pending,
    deadlineAt,
  }: Pick<TakenLease, "lease"> & Pick<PrepareResult, "pending"> & { readonly deadlineAt: number },
  { tasks, clock }: Pick<PrepareTools, "tasks" | "clock">,
): Promise<void> {
  const released = tasks.track(Promise.resolve(pending).then((after) => lease.release(after)));
  const isOver = new AbortController();
  const leftMs = Math.max(0, deadlineAt - clock.monotonic());
  await Promise.race([released, clock.sleep(leftMs, isOver.signal)]).finally(() => isOver.abort());
}

/**
 * The state of the pods after a request. `staying`: every pod confirmed that its preparation was cancelled; `unknown`:
 * some did not; `prepared`: no preparation was cancelled, as an earlier request may still remove the pods.
 */
type PodsOutcome = "leaving" | "staying" | "unknown" | "prepared";

function recordOutcome(pods: PodsOutcome, name: string, { found, recorded }: DownscaleLease): PendingDownscales {
  const pending = ownValue(recorded, name);
  if (!pending || pods === "staying") return found;
  if (pods === "leaving") return recorded;
  if (pods === "unknown") return { ...recorded, [name]: markRefused(ownValue(found, name), pending) };
  return { ...recorded, [name]: { ...pending, at: ownValue(found, name)?.at ?? pending.at } };
}

/**
 * Prepares the pods and records the time of the downscale. After a failure it cancels the preparation (§4.8-§4.10),
 * unless an earlier request for the same pods was admitted and may still be stored.
 */
async function prepare(
  prepareRequest: PrepareRequest,
  { earlier, isOurs }: { readonly earlier: PendingDownscale | undefined } & Pick<PodCalls, "isOurs">,
  { podHttp, clock, clusterDomain, record, emitEvents }: PrepareTools,
): Promise<{ readonly answer: Answer; readonly pods: Promise<PodsOutcome> }> {
  const { request, downscale, preparation, context, zone } = prepareRequest;
  const { signal, log } = context;
  const current = currentOf(prepareRequest);
  const isAwaited = earlier !== undefined && mayStillHappen(earlier, current, clock.now());
  // The time of an earlier downscale that has not happened.
  const unsettled = earlier && !mayHaveHappened(earlier, current) ? earlier.at : undefined;
  let refusal: string | undefined;
  const onFailure = (url: string, error: unknown): void => {
    refusal ??= describePodFailure(url, error);
    log.warn("pod refused preparation", { ...logged(request), url: redactUrl(url), error });
  };
  const endpoints = endpointsOf(preparation, leavingOf(prepareRequest), clusterDomain);
  const calls = { podHttp, clock, namespace: request.namespace ?? "", endpoints, isOurs, onFailure };
  const undo = async (): Promise<PodsOutcome> =>
    isAwaited ? "prepared" : (await cancelPreparation(calls, CANCEL_MS)) ? "staying" : "unknown";
  const cancel = (reason: string, message: string) => ({
    answer: denyDownscale(prepareRequest, reason, message),
    pods: undo(),
  });
  if (!(await postPrepare(calls, signal))) {
    const why = `one or more pods failed to prepare for shutdown${refusal === undefined ? "" : `: ${refusal}`}.`;
    const cancelled = cancel("PodsNotPrepared", why);
    // The reconciler uses the same reason for its hold.
    const reason = "PrepareFailed" satisfies Reason;
    emitEvents([{ regarding: zone, type: "Warning", reason, message: cancelled.answer.message ?? "" }]);
    return cancelled;
  }
  try {
    const patch = await record.save(request, unsettled, { signal });
    const message = `${describeDownscale(prepareRequest)} is allowed -- all pods successfully prepared for shutdown.`;
    return {
      answer: { allowed: true, reason: "Prepared", message, ...(patch && { patch }), log: replicaFields(downscale) },
      pods: Promise.resolve("leaving"),
    };
  } catch (error) {
    log.warn("the time of the downscale could not be recorded", { ...logged(request), error });
    return cancel("NotRecorded", record.messages.unsaved);
  }
}
