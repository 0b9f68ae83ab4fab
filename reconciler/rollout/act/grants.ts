/** Requests the pods of a batch from their disruption budget. */
import type { DeletePods } from "../../model/outcome.ts";
import { hasCode } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import type { Hold } from "../../model/decision.ts";
import type { Pod } from "../../model/pod.ts";
import type { DisruptionContext, DisruptionGrant } from "../../budget/act/may-disrupt.ts";

/** A pod that may be deleted. */
export interface Grant {
  readonly pod: Pod;
  /** Undefined if there is nothing to release. */
  readonly grant: DisruptionGrant | undefined;
}

/** Simultaneous requests share the reads of a budget. Rejects with the first error, after all grants are released. */
export async function requestGrants(
  { zone, pods: chosen }: DeletePods,
  actor: Pick<DisruptionContext, "fence" | "mayDisrupt">,
): Promise<{ grants: Grant[]; denied: Hold[] }> {
  const answers = await Promise.allSettled(chosen.map((pod) => actor.mayDisrupt(pod, zone, actor.fence.write())));
  const grants: Grant[] = [];
  const denied: Hold[] = [];
  for (const [i, answer] of answers.entries()) {
    const pod = chosen[i];
    if (!pod || answer.status === "rejected") continue;
    if (answer.value?.action === "hold") denied.push(answer.value);
    else grants.push({ pod, grant: answer.value });
  }
  const failed = answers.find((answer) => answer.status === "rejected");
  if (!failed) return { grants, denied };
  await releaseAll(grants, actor);
  throw failed.reason;
}

/** Releases grants that were not used; once the Lease is lost, they are left to expire. */
export async function releaseAll(grants: Iterable<Grant>, { fence }: Pick<Context, "fence">): Promise<void> {
  try {
    for (const { grant } of grants) await grant?.release(fence.write());
  } catch (error) {
    if (!hasCode(error, "LeaseLost")) throw error;
  }
}
