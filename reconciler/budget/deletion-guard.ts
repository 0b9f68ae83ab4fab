/**
 * The guard of pod deletions by hand in a namespace (§5.12): our policy, which refuses each, our webhook, which asks
 * the budget, or none. Policies and webhooks of others are not known. Pure.
 */
import { matchesSelector, type LabelSelector } from "../model/label-selector.ts";
import { type EvictionHook, type GuardFacts, selectsNamespace, whyNotCallable } from "./guard.ts";

/** A policy on deletions of pods that a binding enforces. */
export interface DeletionPolicy {
  readonly name: string;
  readonly namespaceSelector: LabelSelector;
  readonly objectSelector: LabelSelector;
}

export interface DeletionGuardFacts extends Pick<
  GuardFacts,
  "namespace" | "labels" | "labelsKnown" | "endpoints" | "unread"
> {
  /** Entries that are called for deletions of pods; undefined if they could not be read. */
  readonly hooks: readonly EvictionHook[] | undefined;
  readonly policies: readonly DeletionPolicy[] | undefined;
}

export interface DeletionGuard {
  /**
   * `policy`: each is refused. `webhook`: the budget decides. `down`: the webhook cannot be called and fails closed, each
   * is refused. `none`: each is executed. `unknown`: it was not seen.
   */
  readonly by: "policy" | "webhook" | "down" | "none" | "unknown";
  readonly message: string;
  /** How to install or fix a guard; "" if there is nothing to do. */
  readonly remedy: string;
}

const CHOOSE =
  "docs/hardening.md, Deletions of pods: infra/manifests/pod-deletion-webhook or infra/manifests/pod-deletion-policy";

/** The guard of pods with these labels. */
export function judgeDeletionGuard(
  facts: DeletionGuardFacts,
  podLabels: Readonly<Record<string, string>>,
): DeletionGuard {
  const { namespace, hooks, policies, unread } = facts;
  const concerns = (one: Pick<EvictionHook, "namespaceSelector" | "objectSelector">): boolean =>
    selectsNamespace(one, facts) && matchesSelector(one.objectSelector, podLabels);
  const policy = policies?.find(concerns);
  if (policy)
    return {
      by: "policy",
      message: `the policy ${policy.name} refuses each deletion of a running pod of a rollout group in ${namespace}`,
      remedy: "",
    };
  const hook = hooks?.find(concerns);
  if (hook) return judgeHook(hook, facts);
  if (!policies || !hooks)
    return {
      by: "unknown",
      message: `whether deletions of pods in ${namespace} are guarded was not seen: ${unread.join("; ")}`,
      remedy: "as one who may list webhook configurations and admission policies: zonewise doctor",
    };
  return { by: "none", message: `kubectl delete pod in ${namespace} asks no disruption budget`, remedy: CHOOSE };
}

function judgeHook(hook: EvictionHook, facts: DeletionGuardFacts): DeletionGuard {
  const { name, failsOpen } = hook;
  const why = whyNotCallable(hook, facts);
  if (why === undefined)
    return { by: "webhook", message: `${name} asks the disruption budget about each deletion of a pod`, remedy: "" };
  const remedy = "docs/reference/webhooks.md, Is it asked: what mends the eviction webhook mends this one";
  return failsOpen
    ? { by: "none", message: `${name} cannot be called, ${why}, and fails open: deletions ask no budget`, remedy }
    : { by: "down", message: `${name} cannot be called, ${why}, and fails closed: deletions are refused`, remedy };
}
