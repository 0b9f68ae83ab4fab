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

/** `downscale of statefulsets/web in shop from 3 to 2 replicas`: how every message on it begins. */
export function describeDownscale({ resource, namespace = "", name = "" }: AdmissionRequest, from: number, to: number): string {
  return `downscale of ${resource.resource}/${name} in ${namespace} from ${from} to ${to} replicas`;
}

function unreadable(which: "old" | "new", { cause, problem }: Unscalable, words: Unscalable["cause"]): Answer {
  const [verb, noun] = cause === "kind" && words === "kind" ? ["get", "replicas"] : ["decode", "object"];
  return allowWithWarning("Unreadable", `can't ${verb} ${which} ${noun}, allowing the change, err: ${problem}`);
}
