/** What a group's rollout would do next if it had no gates. Pure. */
import type { Wanted } from "./rollout.ts";
import { takesServing } from "../rollout/decide-rollout.ts";
import type { RolloutDecision } from "../rollout/decide-zone.ts";

/** The zone whose serving pods it would take, or that the group is settled, by the decision without gates. */
export function wantedBy(ungated: RolloutDecision | undefined): Wanted {
  if (!ungated) return { kind: "settled" };
  return takesServing(ungated) ? { kind: "zone", zone: ungated.zone } : { kind: "other" };
}
