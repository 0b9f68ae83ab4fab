/**
 * `/admission/prepare-downscale`: prepares pods for shutdown before a downscale removes them, one zone of a group at a
 * time (§4).
 *
 *   is it a downscale? -> of a labelled StatefulSet with valid annotations? -> prepareZone
 *
 * The pods have all of the request's time to answer. Preparations are undone before the answer as far as time is left,
 * otherwise after it. If the process dies, the reconciler finds the downscale in the Lease and concludes it
 * (reconciler/downscale/act/conclude-downscales.ts).
 */
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { startDeadline } from "../../infra/deadline.ts";
import { hasCode, RolloutError } from "../../infra/errors.ts";
import { type StatefulSet, statefulSets } from "../../infra/kubernetes/resources.ts";
import { readPreparation } from "../../reconciler/downscale/preparation.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import type { OrdinalRange } from "../../reconciler/model/order.ts";
import { EMPTY_GROUP, hasEmptyGroup } from "../../reconciler/model/refused-group.ts";
import { readZone } from "../../reconciler/model/zone.ts";
import type { AdmissionRequest, Answer, Webhook } from "../http/webhook.ts";
import { type PrepareRequest, type PrepareContext, prepareZone, type PrepareTools, ANSWER_MS } from "./prepare-zone.ts";
import {
  allowWithWarning,
  type Candidate,
  denyDownscale,
  denyByLabel,
  findDownscale,
  readScalable,
  type Scalable,
} from "./find-downscale.ts";

export function createPrepareDownscale(tools: PrepareTools): Webhook {
  return {
    name: "prepareDownscale",
    paths: ["/admission/prepare-downscale"],
    async handle(request, context) {
      if (request.dryRun) return { allowed: true, reason: "DryRun" };
      const moved = refuseMove(request);
      if (moved) return moved;
      const downscale = findDownscale(request, "decode");
      if ("allowed" in downscale) return downscale;
      // The API server will refuse the request: its pods must not be prepared.
      if (isStale(request)) return { allowed: true, reason: "Stale" };
      const remainingMs = context.deadlineAt - tools.clock.monotonic();
      using deadline = startDeadline(Math.max(0, remainingMs - ANSWER_MS), context.signal, tools.clock);
      const prepareRequest = await readPrepareRequest({ request, downscale }, tools.cluster, {
        ...context,
        signal: deadline.signal,
        remainingMs,
      });
      return "allowed" in prepareRequest ? prepareRequest : await prepareZone(prepareRequest, tools);
    },
    onFault(_error, request) {
      const downscale = findDownscale(request, "decode");
      return "allowed" in downscale
        ? downscale
        : denyDownscale(
            { request, downscale },
            "Fault",
            "an error occurred while its pods were prepared for shutdown.",
          );
    },
  };
}

/**
 * Refuses a change of `spec.ordinals.start` that removes pods: only the last pods, by the number of replicas, are
 * prepared, so these would be removed without preparation (§4.4).
 */
function refuseMove({ object, oldObject, resource, namespace = "", name = "" }: AdmissionRequest): Answer | undefined {
  const [old, next] = [readScalable(oldObject), readScalable(object)];
  if ("problem" in old || "problem" in next || old.firstOrdinal === next.firstOrdinal) return undefined;
  const [before, after] = [rangeOf(old), rangeOf(next)];
  const takesPods = before.start < before.end && (after.start > before.start || after.end < before.end);
  if (!takesPods || !isPrepared(old.labels)) return undefined;
  const change = `change of spec.ordinals.start of ${resource.resource}/${name} in ${namespace} from ${before.start} to ${after.start}`;
  const why = `pods would go that are not prepared for shutdown; scale it to 0 or remove the label ${LABELS.prepareDownscale} first.`;
  return { allowed: false, reason: "OrdinalsMoved", message: `${change} is not allowed because ${why}` };
}

function rangeOf({ firstOrdinal, replicas }: Scalable): OrdinalRange {
  return { start: firstOrdinal, end: firstOrdinal + (replicas ?? 1) };
}

const isPrepared = (labels: Readonly<Record<string, string>>): boolean => labels[LABELS.prepareDownscale] === "true";

/**
 * The format that the API server writes. It reads other formats as well: `0` and `00` stand for no version, and `07` is
 * `7`.
 */
const CANONICAL_VERSION = /^[1-9]\d*$/;

/** True if the object has changed since the client read it: the PUT will end in a conflict. */
function isStale({ object, oldObject }: AdmissionRequest): boolean {
  const [next, old] = [versionOf(object), versionOf(oldObject)];
  return next !== old && [next, old].every((version) => CANONICAL_VERSION.test(version ?? ""));
}

function versionOf(object: unknown): string | undefined {
  return (object as { readonly metadata?: { readonly resourceVersion?: string } | null } | undefined)?.metadata
    ?.resourceVersion;
}

/** The StatefulSet and its preparation, or the answer if no pod is to be prepared (§4.4, §4.6). */
async function readPrepareRequest(
  candidate: Candidate,
  cluster: Cluster,
  context: PrepareContext,
): Promise<PrepareRequest | Answer> {
  let zone: StatefulSet;
  try {
    zone = await readStatefulSet(candidate, cluster, context);
  } catch (error) {
    if (hasCode(error, "NotFound", "Invalid"))
      return allowWithWarning("ParentUnknown", `${error.message}, allowing the change`);
    // Its pods may need preparation: a refused downscale is safer than one without preparation.
    return denyDownscale(candidate, "ParentUnknown", "finding the statefulset failed.");
  }
  const { labels = {} } = zone.metadata ?? {};
  if (!isPrepared(labels)) return { allowed: true, reason: "NotLabelled" };
  // The webhook no-downscale allows requests that it cannot read; then only this refusal keeps the pods (§4.4).
  if (labels[LABELS.noDownscale] === "true") return denyByLabel(candidate);
  if (hasEmptyGroup(labels)) return denyDownscale(candidate, "GroupNameEmpty", `${EMPTY_GROUP}.`);
  const preparation = readPreparation(zone);
  if ("problem" in preparation) return denyDownscale(candidate, "PreparationUnknown", preparation.problem);
  return { ...candidate, zone: readZone(zone), preparation, context };
}

async function readStatefulSet(
  { request, downscale: { old } }: Candidate,
  cluster: Cluster,
  { signal }: PrepareContext,
): Promise<StatefulSet> {
  const { resource, namespace = "", name = "", oldObject } = request;
  if (old.kind === "StatefulSet") return oldObject as StatefulSet;
  if (old.kind !== "Scale") throw new RolloutError("Invalid", `unsupported type apps/v1, Kind=${old.kind}`);
  if (resource.group !== "apps" || resource.resource !== "statefulsets")
    throw new RolloutError("Invalid", `unsupported resource ${resource.resource}`);
  return await cluster.get(statefulSets, { namespace, name }, { signal });
}
