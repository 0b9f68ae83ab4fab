/** The first steps of both downscale webhooks: is the request a downscale (§3.1-§3.5, §4.1)? */
import { readScalable, type Scalable, type Unscalable } from "../../reconciler/downscale/scalable.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import type { AdmissionRequest, Answer } from "../http/webhook.ts";

export interface Downscale {
  readonly old: Scalable;
  readonly from: number;
  readonly to: number;
}

/**
 * The requested downscale, or the answer to a request that is no downscale. `otherKinds` selects the message for
 * objects of other kinds.
 */
export function findDownscale(request: AdmissionRequest, otherKinds: Unscalable["cause"] = "kind"): Downscale | Answer {
  const old = readScalable(request.oldObject);
  if ("problem" in old) return allowUnreadable("old", old, otherKinds);
  const next = readScalable(request.object);
  if ("problem" in next) return allowUnreadable("new", next, otherKinds);
  const [from, to] = [old.replicas, next.replicas];
  if ((from === null) !== (to === null))
    return allowWithWarning("ReplicasUnknown", "old/new replicas is nil, allowing the change");
  if (from === null || to === null || to >= from) return { allowed: true, reason: "NoDownscale" };
  return { old, from, to };
}

/** The downscale webhooks fail open if they cannot decide. */
export function allowWithWarning(reason: string, warning: string): Answer {
  return { allowed: true, reason, warnings: [warning] };
}

export interface Candidate {
  readonly request: AdmissionRequest;
  readonly downscale: Downscale;
}

/** The answer that refuses the downscale; `explanation` ends the sentence. */
export function denyDownscale(candidate: Candidate, reason: string, explanation: string): Answer {
  const message = `${describeDownscale(candidate)} is not allowed because ${explanation}`;
  return { allowed: false, reason, message, log: replicaFields(candidate.downscale) };
}

/** The answer of both webhooks for an object with the label (§3.7, §4.4): neither needs the other. */
export function denyByLabel(candidate: Candidate): Answer {
  return denyDownscale(candidate, "NoDownscaleLabel", `it has the label '${LABELS.noDownscale}=true'`);
}

/** `downscale of statefulsets/web in shop from 3 to 2 replicas`: the beginning of every message about the downscale. */
export function describeDownscale({ request, downscale: { from, to } }: Candidate): string {
  const { resource, namespace = "", name = "" } = request;
  return `downscale of ${resource.resource}/${name} in ${namespace} from ${from} to ${to} replicas`;
}

export function replicaFields({ from, to }: Downscale): Readonly<Record<string, number>> {
  return { "object.old_replicas": from, "object.new_replicas": to };
}

function allowUnreadable(
  which: "old" | "new",
  { cause, problem }: Unscalable,
  otherKinds: Unscalable["cause"],
): Answer {
  const [verb, noun] = cause === "kind" && otherKinds === "kind" ? ["get", "replicas"] : ["decode", "object"];
  return allowWithWarning("Unreadable", `can't ${verb} ${which} ${noun}, allowing the change, err: ${problem}`);
}
