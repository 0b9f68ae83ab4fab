/** The next step of a group in a few words. */
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { group, PREVIOUS, type ZoneTraits } from "../builders.ts";

/** A decision in one line: `delete a-0 a-1`, `finish a`, `hold Reason`, `settled`. */
export const decide = (...zones: readonly (ZoneTraits | string)[]): string => decideAt(undefined, ...zones);

/** The decision at that time, milliseconds since the epoch. */
export function decideAt(now: number | undefined, ...zones: readonly (ZoneTraits | string)[]): string {
  const decision = decideRollout({ ...group(...zones), now });
  const short = (name: string): string => name.replace("ingester-zone-", "");
  if (!decision) return "settled";
  if (decision.action === "hold") return `hold ${decision.reason}`;
  if (decision.action === "finishZone") return `finish ${short(decision.zone.name)}`;
  return `delete ${decision.pods.map((pod) => short(pod.name)).join(" ")}`;
}

export const old = { at: PREVIOUS };

export const updated = {};

export const paused = { annotations: { "grafana.com/rollout-paused": "true" } };

export const crashing = { broken: "CrashLoopBackOff" };
