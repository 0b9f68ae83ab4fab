/** A StatefulSet under a PhasedRollout, from its adoption to the end of a rollout. */
import { deletions } from "../stage/invariants.ts";
import { FAST, isUpdated, type PhasedStage } from "./phased-stage.ts";

/** Adopts `db`: from here on the partition guards it. */
export async function adopt({ createRollout, until, start }: PhasedStage): Promise<ReturnType<PhasedStage["start"]>> {
  await createRollout();
  const reconciler = start(FAST);
  await until("adopted", isUpdated);
  return reconciler;
}

export const deletedPods = ({ timeline }: PhasedStage): string[] => deletions(timeline.entries).map(({ pod }) => pod);

/** Resolves once all pods have the image, the partition guards them again, and the PhasedRollout says so. */
export async function untilRolled(stage: PhasedStage, image: string, replicas: number): Promise<void> {
  const { timeline } = stage;
  const isDone = (): boolean => {
    const { spec, status, metadata } = timeline.statefulSets.get("db") ?? {};
    const counts = [status?.updatedReplicas, status?.readyReplicas, spec?.updateStrategy?.rollingUpdate?.partition];
    return (
      status?.observedGeneration === metadata?.generation &&
      status?.currentRevision === status?.updateRevision &&
      spec?.template.spec?.containers[0]?.image === image &&
      counts.every((count) => count === replicas)
    );
  };
  await timeline.until(`all pods at ${image}, and guarded`, isDone, ROLLOUT_MS);
  await stage.until("updated", isUpdated);
  await timeline.caughtUp();
}

const ROLLOUT_MS = 400_000;

/** Resolves once the checks hold the rollout at this partition. */
export async function untilHeldAt(stage: PhasedStage, partition: number): Promise<void> {
  await stage.until(`checks that fail at partition ${partition}`, ({ status }) => {
    const { status: state, partition: at } = status?.rollingPodStatus ?? {};
    return state === "WaitForChecks" && at === partition;
  });
}
