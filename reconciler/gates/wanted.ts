/** What a group's rollout would do next if it had no gates. Pure. */
import type { Wanted } from "./rollout.ts";
import type { GroupSnapshot } from "../model/zone.ts";
import { decideRollout } from "../rollout/decide-rollout.ts";

/** The zone whose serving pods it would take, or that the group is settled. */
export function wantedBy({ gates: _gates, ...ungated }: GroupSnapshot): Wanted {
  const decision = decideRollout(ungated);
  if (!decision) return { kind: "settled" };
  const takes = decision.action === "deletePods" && decision.pods.some(({ ready }) => ready);
  return takes ? { kind: "zone", zone: decision.zone } : { kind: "other" };
}
