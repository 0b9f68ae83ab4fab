/** Carries out the upkeep of shadows and nodes, each write with the version that was read. */
import type { Actor } from "../../../infra/kubernetes/actor.ts";
import { hasCode } from "../../../infra/errors.ts";
import { bottlerocketShadows } from "../../../infra/kubernetes/custom-resources.ts";
import { nodes } from "../../../infra/kubernetes/resources.ts";
import { newShadow } from "../shadow.ts";
import type { Upkeep } from "../upkeep.ts";
import { writeSpec } from "./write-plan.ts";

interface UpkeepResult {
  readonly upkeep: Upkeep;
  /** Undefined if it was done, or had been done by somebody else. */
  readonly error: unknown;
}

/** A failure is reported and does not stop the others (NW14). Throws `LeaseLost`. */
export async function takeUpkeep(list: readonly Upkeep[], namespace: string, actor: Actor): Promise<UpkeepResult[]> {
  const results: UpkeepResult[] = [];
  for (const upkeep of list) {
    const call = actor.fence.write();
    const error = await takeOne(upkeep, namespace, { ...actor, call }).then(
      () => undefined,
      (error: unknown) => (hasCode(error, "NotFound", "AlreadyExists") ? undefined : error),
    );
    results.push({ upkeep, error });
  }
  return results;
}

async function takeOne(
  upkeep: Upkeep,
  namespace: string,
  { cluster, call }: Actor & { readonly call: ReturnType<Actor["fence"]["write"]> },
): Promise<void> {
  const { node } = upkeep;
  switch (upkeep.action) {
    case "createShadow":
      await cluster.create(bottlerocketShadows, { namespace, body: newShadow(node, namespace) }, call);
      return;
    case "deleteShadow": {
      const { name, uid, resourceVersion } = upkeep.shadow;
      await cluster.remove(bottlerocketShadows, { namespace, name, preconditions: { uid, resourceVersion } }, call);
      return;
    }
    case "resetShadow":
      return await writeSpec(upkeep, { cluster }, call);
    case "uncordon":
    case "protect":
    case "unprotect":
      await cluster.patch(nodes, { name: node.name, type: "merge", body: upkeep.patch }, call);
      return;
    default:
      return upkeep satisfies never;
  }
}
