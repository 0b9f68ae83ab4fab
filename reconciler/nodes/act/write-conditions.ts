/** Writes lifecycle conditions of nodes, each patch with the version that was read. */
import type { Actor } from "../../../infra/kubernetes/actor.ts";
import { nodes } from "../../../infra/kubernetes/resources.ts";
import type { ConditionPatch } from "../lifecycle-conditions.ts";

/**
 * Resolves with the conditions that could not be written; the next pass tries again. One failure does not stop the
 * others. Throws `LeaseLost`.
 */
export async function writeConditions(
  patches: readonly ConditionPatch[],
  { cluster, fence, freshness }: Actor,
): Promise<{ readonly node: string; readonly error: unknown }[]> {
  const failed: { readonly node: string; readonly error: unknown }[] = [];
  for (const { node: name, patch: body } of patches) {
    const call = fence.write();
    try {
      const version = await cluster.patch(nodes, { name, subresource: "status", type: "strategic", body }, call);
      freshness.noteWritten(nodes, version);
    } catch (error) {
      failed.push({ node: name, error });
    }
  }
  return failed;
}
