/**
 * `/admission/prepare-downscale`: pods are told before they are scaled away, one zone of a group at a time [4].
 *
 *   is it a downscale of a StatefulSet that wants this? -> the group's Lease -> the other zones -> POST to the pods that go
 *   -> write down the time -> allow; whatever fails from the first POST on: DELETE to the same pods -> deny
 *
 * Everything but the undoing ends so early that the undoing fits before the deadline; should it not, it goes on after the answer.
 */
import type { Clock } from "../infra/clock.ts";
import type { Cluster } from "../infra/cluster.ts";
import { startDeadline } from "../infra/deadline.ts";
import { hasCode, messageOf, RolloutError } from "../infra/errors.ts";
import { type PodHttp, redactUrl } from "../infra/pod-http.ts";
import { type StatefulSet, statefulSets } from "../infra/resources.ts";
import { endpointsOf, type Preparation, readPreparation } from "../reconciler/downscale/preparation.ts";
import { LABELS } from "../reconciler/model/annotations.ts";
import type { DownscaleRecord } from "./downscale-record.ts";
import { takeGroupLease } from "./group-lease.ts";
import type { AdmissionRequest, Answer, Context, Webhook } from "./handler.ts";
import { refuseForOthers } from "./other-zones.ts";
import { preparePods, unpreparePods } from "./pod-calls.ts";
import type { Work } from "./work.ts";
import { allowWithWarning, describeDownscale, type Downscale, findDownscale } from "./scaling.ts";

export interface PrepareTools {
  readonly cluster: Cluster;
  readonly podHttp: PodHttp;
  readonly clock: Clock;
  readonly clusterDomain: string;
  readonly record: DownscaleRecord;
  /** What goes on after the answer, and has to be over before the process is. */
  readonly work: Work;
}

/** A downscale that is worth the trouble. */
interface Job {
  readonly request: AdmissionRequest;
  readonly downscale: Downscale;
  readonly zone: StatefulSet;
  readonly preparation: Preparation;
}

/** What undoing may take; it is kept free before the deadline where that is far enough away. */
const UNDO_MS = 3000;
const UNDO_SHARE = 0.3;
/** For the way of the answer. */
const ANSWER_MS = 100;

export function createPrepareDownscale(tools: PrepareTools): Webhook {
  return {
    name: "prepareDownscale",
    paths: ["/admission/prepare-downscale"],
    async handle(request, context) {
      if (request.dryRun) return { allowed: true, reason: "DryRun" };
      const downscale = findDownscale(request, "decode");
      if ("allowed" in downscale) return downscale;
      // The API server will refuse it: pods must not be prepared for nothing.
      if (isStale(request)) return { allowed: true, reason: "Stale" };
      const remainingMs = context.deadlineAt - tools.clock.monotonic();
      using deadline = startDeadline(remainingMs - Math.min(UNDO_MS, remainingMs * UNDO_SHARE), context.signal);
      const job = await findJob(request, downscale, tools, deadline.signal);
      if ("allowed" in job) return job;
      return await serialise(job, tools, { ...context, signal: deadline.signal }, remainingMs);
    },
    onFault(_error, request) {
      const downscale = findDownscale(request, "decode");
      return "allowed" in downscale
        ? downscale
        : deny(request, downscale, "Fault", "an error occurred while its pods were prepared for shutdown.");
    },
  };
}

/** A PUT of an object that has changed since it was read ends in a conflict. */
function isStale({ object, oldObject }: AdmissionRequest): boolean {
  const [next, old] = [versionOf(object), versionOf(oldObject)];
  return next !== undefined && next !== "" && old !== undefined && next !== old;
}

function versionOf(object: unknown): string | undefined {
  return (object as { readonly metadata?: { readonly resourceVersion?: string } | null } | undefined)?.metadata?.resourceVersion;
}

/** The StatefulSet and what it wants, or the answer where there is nothing to do [4.4-4.6]. */
async function findJob(request: AdmissionRequest, downscale: Downscale, tools: PrepareTools, signal: AbortSignal): Promise<Job | Answer> {
  let zone: StatefulSet;
  try {
    zone = await findZone(request, downscale, tools.cluster, signal);
  } catch (error) {
    if (hasCode(error, "NotFound", "Invalid")) return allowWithWarning("ParentUnknown", `${error.message}, allowing the change`);
    // It may want its pods prepared: better no downscale than one that they do not know of.
    return deny(request, downscale, "ParentUnknown", "finding the statefulset failed.");
  }
  const labels = zone.metadata?.labels ?? {};
  if (labels[LABELS.prepareDownscale] !== "true") return { allowed: true, reason: "NotLabelled" };
  // The other webhook refuses it, after this one: pods must not be prepared for nothing [4.4].
  if (labels[LABELS.noDownscale] === "true") return { allowed: true, reason: "NoDownscaleLabel" };
  const preparation = readPreparation(zone);
  if ("problem" in preparation) return deny(request, downscale, "PreparationUnknown", preparation.problem);
  return { request, downscale, zone, preparation };
}

/** As it was before the downscale. */
async function findZone(
  { resource, namespace = "", name = "", oldObject }: AdmissionRequest,
  { old }: Downscale,
  cluster: Cluster,
  signal: AbortSignal,
) {
  if (old.kind === "StatefulSet") return oldObject as StatefulSet;
  if (old.kind !== "Scale") throw new RolloutError("Invalid", `unsupported type apps/v1, Kind=${old.kind}`);
  if (resource.group !== "apps" || resource.resource !== "statefulsets")
    throw new RolloutError("Invalid", `unsupported resource ${resource.resource}`);
  return await cluster.get(statefulSets, { namespace, name }, { signal });
}

/** Under the Lease of the group, if there is one [4.7]. */
async function serialise(job: Job, tools: PrepareTools, context: Context, remainingMs: number): Promise<Answer> {
  const { request, downscale, zone } = job;
  const { namespace = "", name = "", uid } = request;
  const group = zone.metadata?.labels?.[LABELS.rolloutGroup];
  if (!group) return await prepare(job, tools, context);
  const call = { signal: context.signal };
  const claim = { namespace, group, statefulSet: name, uid, durationMs: remainingMs + UNDO_MS };
  let lease: Awaited<ReturnType<typeof takeGroupLease>>;
  try {
    lease = await takeGroupLease(tools.cluster, claim, tools.clock, call);
  } catch (error) {
    context.log.warn("the lease of the rollout group could not be taken", { error, "request.uid": uid });
    return deny(request, downscale, "LeaseUnavailable", `taking the lease of its rollout group failed: ${messageOf(error)}`);
  }
  if ("holder" in lease) return deny(request, downscale, "Busy", `statefulset ${lease.holder} is already in process of updating replicas`);
  let answer: Answer | undefined;
  try {
    const refusal = await refuseForOthers({ namespace, name, group, admitted: lease.admitted }, tools, context);
    answer = refusal ? deny(request, downscale, refusal.reason, refusal.message) : await prepare(job, tools, context);
    return answer;
  } finally {
    // A release that is slow must not make the answer late; until it is done, the Lease keeps others out.
    const released = tools.work.track(lease.release(answer?.allowed ?? false));
    await Promise.race([released, tools.clock.sleep(Math.max(0, context.deadlineAt - tools.clock.monotonic() - ANSWER_MS))]);
  }
}

/** Tells the pods and writes the time down, or takes it all back [4.8-4.10]. */
async function prepare({ request, downscale, zone, preparation }: Job, tools: PrepareTools, { signal, log }: Context): Promise<Answer> {
  const { from, to } = downscale;
  const { podHttp, clusterDomain, record } = tools;
  const onFailure = (url: string, error: unknown): void =>
    log.warn("pod refused preparation", { url: redactUrl(url), error, "request.uid": request.uid });
  const endpoints = (): Iterable<string> => endpointsOf(preparation, from, to, clusterDomain);
  const calls = { podHttp, namespace: request.namespace ?? "", endpoints, onFailure };
  const undo = async (reason: string, message: string): Promise<Answer> => {
    await unpreparePods(calls, UNDO_MS);
    return deny(request, downscale, reason, message);
  };
  if (!(await preparePods(calls, signal))) return await undo("PodsNotPrepared", "one or more pods failed to prepare for shutdown.");
  try {
    const patch = await record.save(request, zone, { signal });
    const message = `${describeDownscale(request, from, to)} is allowed -- all pods successfully prepared for shutdown.`;
    return { allowed: true, reason: "Prepared", message, ...(patch && { patch }), log: replicas(downscale) };
  } catch (error) {
    log.warn("the downscale could not be written down", { error, "request.uid": request.uid });
    return await undo("NotRecorded", record.words.unsaved);
  }
}

function deny(request: AdmissionRequest, downscale: Downscale, reason: string, why: string): Answer {
  const message = `${describeDownscale(request, downscale.from, downscale.to)} is not allowed because ${why}`;
  return { allowed: false, reason, message, log: replicas(downscale) };
}

function replicas({ from, to }: Downscale): Readonly<Record<string, number>> {
  return { "object.old_replicas": from, "object.new_replicas": to };
}
