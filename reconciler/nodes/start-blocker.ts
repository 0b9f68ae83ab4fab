/** Why a policy starts nothing at all: the first reason. */
import type { PolicySnapshot, Skip } from "./snapshot.ts";
import { isWindowOpen } from "./window.ts";

export function startBlocker({ now, policy }: Pick<PolicySnapshot, "now" | "policy">): Omit<Skip, "node"> | undefined {
  const { enabled, problem, window, status } = policy;
  const { frozen } = status;
  if (problem !== undefined) return { reason: "PolicyInvalid", message: problem };
  if (!enabled) return { reason: "Disabled", message: "updates are switched off" };
  if (frozen)
    return {
      reason: "Frozen",
      message: `frozen since ${frozen.at}: ${frozen.message}; spec.unfreeze: ${frozen.id} goes on`,
    };
  return isWindowOpen(window, status.campaign, now).open
    ? undefined
    : { reason: "WindowClosed", message: "outside the window" };
}
