/** The webhook that judges deletions of pods: which seeds register it, and how. */
import { listOf } from "../../emulator/objects.ts";
import type { Draft } from "../../emulator/objects.ts";
import { type Draw, drawFrom } from "../draw.ts";

export interface DeletionsShape {
  /** The configuration has the conditions by which controllers pass without a call; otherwise the function decides. */
  readonly conditions: boolean;
}

/** Apart from all else that the seed draws: a history without the webhook is the same as if there were none. */
const STREAM = 0x64656c65;
/** Of so many seeds one registers it. */
const ONE_OF = 4;

export function drawDeletions(seed: number): DeletionsShape | undefined {
  const draw: Draw = drawFrom(seed ^ STREAM);
  return draw.below(ONE_OF) === 0 ? { conditions: draw.chance(0.5) } : undefined;
}

/** What lets a pod go by hand, and what looks like it. */
export const BY_HAND = "zonewise/delete-by-hand";
export const CONFIGURATION = "pod-deletion-zonewise";
export const CONFIGURATIONS = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/** The configuration as an installation without conditions has it. */
export const withoutConditions = (configuration: Draft): Draft => ({
  ...configuration,
  webhooks: listOf(configuration["webhooks"]).map((webhook) => ({ ...(webhook as object), matchConditions: [] })),
});
