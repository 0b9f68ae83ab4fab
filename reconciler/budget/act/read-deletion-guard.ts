/** Reads the webhooks and policies that guard deletions of pods, for the command line: only it may list policies. */
import { absent } from "../../../infra/errors.ts";
import { collect, noteUnread } from "../../../infra/kubernetes/collect.ts";
import { validatingPolicies, validatingPolicyBindings } from "../../../infra/kubernetes/resources.ts";
import { DELETION_PATH } from "../deletion.ts";
import type { DeletionGuardFacts, DeletionPolicy } from "../deletion-guard.ts";
import { type Asked, type GuardSource, readHooksOf } from "./read-guard.ts";

const DELETIONS: Asked = { paths: [DELETION_PATH], operation: "DELETE", resources: ["pods", "*", "pods/*", "*/*"] };

/**
 * The webhooks and the policies on deletions of pods. Never rejects: `unread` names the parts that could not be read.
 */
export async function readDeletionGuards(
  source: GuardSource,
): Promise<Pick<DeletionGuardFacts, "hooks" | "endpoints" | "unread" | "policies">> {
  const unread: string[] = [];
  const [reading, policies] = await Promise.all([
    readHooksOf(DELETIONS, source),
    readPolicies(source).catch(noteUnread(unread, "validating admission policies and their bindings")),
  ]);
  return { ...reading, policies, unread: [...reading.unread, ...unread] };
}

/** Our policies, found by their names. None on a cluster without such a kind. */
async function readPolicies({ cluster, call }: GuardSource): Promise<readonly DeletionPolicy[]> {
  const [policies, bindings] = await Promise.all([
    collect(cluster.list(validatingPolicies, {}, call)).catch(absent),
    collect(cluster.list(validatingPolicyBindings, {}, call)).catch(absent),
  ]);
  const enforced = new Set(
    (bindings ?? []).flatMap(({ spec }) => (spec?.validationActions?.includes("Deny") ? (spec.policyName ?? []) : [])),
  );
  return (policies ?? []).flatMap(({ metadata, spec }): DeletionPolicy[] => {
    const name = metadata?.name ?? "";
    if (!name.startsWith("pod-deletions.") || !enforced.has(name)) return [];
    const { namespaceSelector = {}, objectSelector = {} } = spec?.matchConstraints ?? {};
    return [{ name, namespaceSelector, objectSelector }];
  });
}
