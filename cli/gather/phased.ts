/** Reads PhasedRollouts with their StatefulSets. */
import { hasCode } from "../../infra/errors.ts";
import { gatherRollouts, type Gathered } from "../../reconciler/phasing/gather-rollouts.ts";
import { explainError } from "../decide/explain-error.ts";
import type { Session } from "../session.ts";

/** None where the cluster does not know them. What may not be read is told, and left out. */
export async function gatherPhased(session: Session, namespace: string): Promise<readonly Gathered[]> {
  try {
    // Which answers of a check are good is not told: the default will do.
    return (await gatherRollouts(namespace, "NoData", session)) ?? [];
  } catch (error) {
    if (!hasCode(error, "Forbidden")) throw error;
    session.io.warn(`note: PhasedRollouts are left out: ${explainError(error).message}\n`);
    return [];
  }
}
