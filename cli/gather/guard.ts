/**
 * Finds out what guards the pods of a namespace: whether a webhook judges evictions, by a probe, and what judges
 * deletions by hand, by what is registered.
 */
import { absent } from "../../infra/errors.ts";
import { collect, noteUnread } from "../../infra/kubernetes/collect.ts";
import { namespaces, validatingPolicies, validatingPolicyBindings } from "../../infra/kubernetes/resources.ts";
import { once } from "../../infra/once.ts";
import { EVICTIONS, readHooks, type Requests, seeGuard } from "../../reconciler/budget/act/see-guard.ts";
import type { Pod } from "../../reconciler/model/pod.ts";
import { DELETION_PATH } from "../../reconciler/budget/deletion.ts";
import type { Guard } from "../../reconciler/budget/guard.ts";
import type { Labels } from "../../reconciler/model/label-selector.ts";
import { judgeDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import type { World } from "../../reconciler/plan/world.ts";
import {
  type DeletionGuard,
  type DeletionGuards,
  type DeletionPolicy,
  judgeDeletionGuard,
} from "../decide/deletion-guard.ts";
import { explainError } from "../decide/explain-error.ts";
import type { Session } from "../session.ts";

/** Milliseconds: until then, the port repeats calls that are answered with Retry-After. */
const PROBE_MS = 5000;

const DELETIONS: Requests = { paths: [DELETION_PATH], operation: "DELETE", resources: ["pods", "*", "pods/*", "*/*"] };

/** The guard of evictions in a namespace. Never rejects. */
export type Guards = (namespace: string) => Promise<Guard>;

/** Undefined for a pod that no budget selects, unless its eviction is refused all the same. */
export async function gatherGuard(guards: Guards, pod: Pod, world: World): Promise<Guard | undefined> {
  const guard = await guards(pod.namespace);
  const isSelected = judgeDisruption(world, pod).verdict.reason !== "PodNotInScope";
  return isSelected || isRefusing(guard) ? guard : undefined;
}

/** The webhook cannot be called, and fails closed: every eviction in the namespace is refused, with a budget or without. */
export const isRefusing = ({ reason }: Guard): boolean => reason === "WebhookDown";

/** Reads the registered webhooks once, and asks once in each namespace. */
export function createGuards({ cluster }: Session): Guards {
  const registered = once(async () => await readHooks(EVICTIONS, { cluster }));
  const asking = {
    cluster,
    call: { deadlineMs: PROBE_MS },
    describe: (error: unknown): string => explainError(error).message,
  };
  return once(async (namespace: string) => await seeGuard(namespace, await registered(), asking));
}

/** The guard of deletions of pods with these labels in a namespace; reads once. Never rejects. */
export function createDeletionGuards(
  session: Session,
  guards: Guards,
): (namespace: string, podLabels: Labels) => Promise<DeletionGuard> {
  const read = once(async () => await readDeletionGuards(session));
  const labelsOf = once(async (name: string) => {
    const found = await session.cluster.get(namespaces, { name }).catch(() => undefined);
    return { ...found?.metadata?.labels, "kubernetes.io/metadata.name": name };
  });
  return async (namespace, podLabels) => {
    const [known, labels, evictions] = await Promise.all([read(), labelsOf(namespace), guards(namespace)]);
    return judgeDeletionGuard({ ...known, labels, namespace, evictions }, podLabels);
  };
}

async function readDeletionGuards({ cluster }: Session): Promise<DeletionGuards> {
  const unread: string[] = [];
  const [registered, policies] = await Promise.all([
    readHooks(DELETIONS, { cluster }),
    readPolicies({ cluster }).catch(noteUnread(unread, "validating admission policies and their bindings")),
  ]);
  return { ...registered, policies, unread: [...registered.unread, ...unread] };
}

/** Our policies, found by their names. None on a cluster without such a kind. */
async function readPolicies({ cluster }: Pick<Session, "cluster">): Promise<readonly DeletionPolicy[]> {
  const [policies, bindings] = await Promise.all([
    collect(cluster.list(validatingPolicies, {})).catch(absent),
    collect(cluster.list(validatingPolicyBindings, {})).catch(absent),
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
