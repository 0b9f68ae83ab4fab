/**
 * `/admission/prepare-downscale`: pods are told before they are scaled away, one zone of a group at a time (§4).
 *
 *   is it a downscale? -> of a StatefulSet that wants this, and says how? -> prepareZone
 *
 * Everything but the undoing ends so early that the undoing fits before the deadline; should it not, it goes on after the answer.
 * What a process that dies leaves behind, the reconciler finds noted in the Lease (settle-downscales.ts).
 */
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { startDeadline } from "../../infra/deadline.ts";
import { hasCode, RolloutError } from "../../infra/errors.ts";
import { type StatefulSet, statefulSets } from "../../infra/kubernetes/resources.ts";
import { readPreparation } from "../../reconciler/downscale/preparation.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { readZone } from "../../reconciler/model/zone.ts";
import type { AdmissionRequest, Answer, Webhook } from "../http/webhook.ts";
import { type Job, type PrepareContext, prepareZone, type PrepareTools, UNDO_MS } from "./prepare-zone.ts";
import { allowWithWarning, type Candidate, deny, findDownscale } from "./find-downscale.ts";

/** The part of the time that is kept free for undoing, where that is not far longer than it takes. */
const UNDO_SHARE = 0.3;

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
      const job = await findJob({ request, downscale }, tools.cluster, { ...context, signal: deadline.signal, remainingMs });
      return "allowed" in job ? job : await prepareZone(job, tools);
    },
    onFault(_error, request) {
      const downscale = findDownscale(request, "decode");
      return "allowed" in downscale
        ? downscale
        : deny({ request, downscale }, "Fault", "an error occurred while its pods were prepared for shutdown.");
    },
  };
}

/** As the API server writes them. It reads others as well: `0` and `00` ask for no version, and `07` is `7`. */
const CANONICAL_VERSION = /^[1-9]\d*$/;

/** A PUT of an object that has changed since it was read ends in a conflict. */
function isStale({ object, oldObject }: AdmissionRequest): boolean {
  const [next, old] = [versionOf(object), versionOf(oldObject)];
  return next !== old && [next, old].every((version) => CANONICAL_VERSION.test(version ?? ""));
}

function versionOf(object: unknown): string | undefined {
  return (object as { readonly metadata?: { readonly resourceVersion?: string } | null } | undefined)?.metadata?.resourceVersion;
}

/** The StatefulSet and what it wants, or the answer where there is nothing to do (§4.4, §4.6). */
async function findJob(candidate: Candidate, cluster: Cluster, context: PrepareContext): Promise<Job | Answer> {
  let zone: StatefulSet;
  try {
    zone = await findZone(candidate, cluster, context);
  } catch (error) {
    if (hasCode(error, "NotFound", "Invalid")) return allowWithWarning("ParentUnknown", `${error.message}, allowing the change`);
    // It may want its pods prepared: better no downscale than one that they do not know of.
    return deny(candidate, "ParentUnknown", "finding the statefulset failed.");
  }
  const labels = zone.metadata?.labels ?? {};
  if (labels[LABELS.prepareDownscale] !== "true") return { allowed: true, reason: "NotLabelled" };
  // The other webhook refuses it, after this one: pods must not be prepared for nothing (§4.4).
  if (labels[LABELS.noDownscale] === "true") return { allowed: true, reason: "NoDownscaleLabel" };
  const preparation = readPreparation(zone);
  if ("problem" in preparation) return deny(candidate, "PreparationUnknown", preparation.problem);
  return { ...candidate, zone: readZone(zone), preparation, context };
}

/** As it was before the downscale. */
async function findZone({ request, downscale: { old } }: Candidate, cluster: Cluster, { signal }: PrepareContext): Promise<StatefulSet> {
  const { resource, namespace = "", name = "", oldObject } = request;
  if (old.kind === "StatefulSet") return oldObject as StatefulSet;
  if (old.kind !== "Scale") throw new RolloutError("Invalid", `unsupported type apps/v1, Kind=${old.kind}`);
  if (resource.group !== "apps" || resource.resource !== "statefulsets")
    throw new RolloutError("Invalid", `unsupported resource ${resource.resource}`);
  return await cluster.get(statefulSets, { namespace, name }, { signal });
}
