/** The StatefulSet of a PhasedRollout, and its pods, as oracles and people read them. */
import { dig, listOf, numberOf } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";

/** The PhasedRollout that manages the StatefulSet, as it says. */
export const claimOf = (set: KubeObject): string | undefined => set.metadata.annotations?.["sts.plus/phasedRollout"];
/** Its containers end as they begin, or did and wait. */
export const isCrashing = (pod: KubeObject | undefined): boolean =>
  pod?.metadata.annotations?.["sim/crash"] !== undefined ||
  listOf(dig(pod, "status", "containerStatuses")).some(
    (one) => (numberOf(dig(one, "restartCount")) ?? 0) > 0 && dig(one, "ready") !== true,
  );
