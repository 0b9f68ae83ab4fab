/**
 * The policy `default`, created from the original's variables if there has never been a policy. It selects every
 * managed node: it is not created again after a person has deleted it, nor while the only policy is replaced by
 * another one.
 */
import { hasCode } from "../../../infra/errors.ts";
import type { Actor } from "../../../infra/kubernetes/actor.ts";
import { nodeUpdatePolicies } from "../../../infra/kubernetes/custom-resources.ts";
import { POLICY_KIND } from "../policy.ts";

/** On the reconciler's Lease, once a policy was seen. */
const SEEN = "zonewise/node-update-policy-seen";

interface PolicyMemory {
  /** Annotations of the Lease; written with its next renewal. */
  readonly annotations: Map<string, string>;
  /** The number of policies. */
  readonly found: number;
}

/**
 * Makes the policy if there has never been one; resolves with true if it did. Rejects with the error of the API server.
 */
export async function makeDefault(
  { annotations, found }: PolicyMemory,
  spec: object,
  { cluster, fence }: Pick<Actor, "cluster" | "fence">,
): Promise<boolean> {
  if (found > 0 || annotations.has(SEEN)) {
    annotations.set(SEEN, "true");
    return false;
  }
  const body = { apiVersion: "zonewise.dev/v1", kind: POLICY_KIND, metadata: { name: "default" }, spec };
  // Another installation may make it at the same time.
  await cluster.create(nodeUpdatePolicies, { body }, fence.write()).catch((error: unknown) => {
    if (!hasCode(error, "AlreadyExists")) throw error;
  });
  return true;
}
