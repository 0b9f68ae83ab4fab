/** Reads PhasedRollouts with their StatefulSets. */
import { absent, hasCode } from "../../infra/errors.ts";
import { gatherRollouts, type GatheredRollout } from "../../reconciler/phased/act/gather-rollouts.ts";
import { explainError } from "../decide/explain-error.ts";
import type { Session } from "../session.ts";

interface FoundRollouts {
  readonly phased: readonly GatheredRollout[];
  /** The reason why they may not be read. */
  readonly unread?: string;
}

/** Empty if the cluster does not know them. */
export async function readPhased(session: Session, namespace: string): Promise<FoundRollouts> {
  try {
    // The default is enough: the meaning of a check's answer is not shown.
    return { phased: (await gatherRollouts(namespace, "NoData", session).catch(absent))?.rollouts ?? [] };
  } catch (error) {
    if (!hasCode(error, "Forbidden")) throw error;
    return { phased: [], unread: explainError(error).message };
  }
}

/** Objects that may not be read are named in a warning and left out. */
export async function gatherPhased(session: Session): Promise<readonly GatheredRollout[]> {
  const { phased, unread } = await readPhased(session, session.namespace);
  if (unread !== undefined) session.io.warn(`note: PhasedRollouts are not shown: ${unread}\n`);
  return phased;
}
