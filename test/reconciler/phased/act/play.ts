/** A PhasedRollout on an emulated cluster, from its first tick on. */
import { applySet, createRollout, type PhasedStage, type SetChoices, setPhasedStage } from "./stage.ts";

export async function play(
  choices: SetChoices,
  run: (stage: PhasedStage) => Promise<void>,
  options?: object,
): Promise<void> {
  const stage = await setPhasedStage();
  try {
    await applySet(stage, "x:1", choices);
    await stage.time.advance(10_000);
    createRollout(stage, options);
    await run(stage);
  } finally {
    await stage.close();
  }
}

/** The index of the lowest pod that is released; the replicas if none is. */
export function partitionOf(stage: PhasedStage): number {
  const { replicas, updateStrategy } = stage.set().spec;
  return Math.min(updateStrategy.rollingUpdate?.partition ?? 0, replicas);
}

export const reasons = ({ events }: PhasedStage): string[] => events.map(({ reason }) => reason);
