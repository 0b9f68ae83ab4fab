/** The first steps that the two downscale webhooks share: is it a downscale at all (§3.1-§3.5, §4.1)? */
import { compareReplicas, readScalable, type Scalable, type Unscalable } from "../../reconciler/downscale/scalable.ts";
import type { AdmissionRequest, Answer } from "../http/webhook.ts";

export interface Downscale {
  readonly old: Scalable;
  readonly from: number;
  readonly to: number;
}

/** The downscale that is asked for, or the answer where it is none; `words` says how objects of other kinds are spoken of. */
export function findDownscale(request: AdmissionRequest, words: Unscalable["cause"] = "kind"): Downscale | Answer {
  const old = readScalable(request.oldObject);
  if ("problem" in old) return unreadable("old", old, words);
  const next = readScalable(request.object);
  if ("problem" in next) return unreadable("new", next, words);
  const direction = compareReplicas(old.replicas, next.replicas);
  if (direction === "unknown") return allowWithWarning("ReplicasUnknown", "old/new replicas is nil, allowing the change");
  if (direction === "not down") return { allowed: true, reason: "NoDownscale" };
  return { old, from: Number(old.replicas), to: Number(next.replicas) };
}

/** These webhooks fail open where they cannot tell. */
export function allowWithWarning(reason: string, warning: string): Answer {
  return { allowed: true, reason, warnings: [warning] };
}

/** A request that is a downscale. */
export interface Candidate {
  readonly request: AdmissionRequest;
  readonly downscale: Downscale;
}

/** The answer that refuses it; `why` ends the sentence. */
export function deny(candidate: Candidate, reason: string, why: string): Answer {
  const message = `${describeDownscale(candidate)} is not allowed because ${why}`;
  return { allowed: false, reason, message, log: logged(candidate.downscale) };
}

/** `downscale of statefulsets/web in shop from 3 to 2 replicas`: how every message on it begins. */
export function describeDownscale({ request, downscale: { from, to } }: Candidate): string {
  const { resource, namespace = "", name = "" } = request;
  return `downscale of ${resource.resource}/${name} in ${namespace} from ${from} to ${to} replicas`;
}

/** What the log line of an answer says about it. */
export function logged({ from, to }: Downscale): Readonly<Record<string, number>> {
  return { "object.old_replicas": from, "object.new_replicas": to };
}

function unreadable(which: "old" | "new", { cause, problem }: Unscalable, words: Unscalable["cause"]): Answer {
  const [verb, noun] = cause === "kind" && words === "kind" ? ["get", "replicas"] : ["decode", "object"];
  return allowWithWarning("Unreadable", `can't ${verb} ${which} ${noun}, allowing the change, err: ${problem}`);
}
