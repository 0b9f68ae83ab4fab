/**
 * The guard of pod deletions by hand in a namespace (§5.12): our policy, which refuses each, our webhook, which asks
 * the budget, or none. Policies and webhooks of others are not known. Pure.
 */
import type { Guard, Hook, Registered } from "../../reconciler/budget/guard.ts";
import { type LabelSelector, matchesSelector } from "../../reconciler/model/label-selector.ts";
import type { Labels } from "../../reconciler/model/label-selector.ts";

/** A policy on deletions of pods that a binding enforces. */
export interface DeletionPolicy {
  readonly name: string;
  readonly namespaceSelector: LabelSelector;
  readonly objectSelector: LabelSelector;
}

/** Webhooks are those that get deletions of pods. */
export interface DeletionGuards extends Registered {
  readonly policies: readonly DeletionPolicy[] | undefined;
}

export interface DeletionFacts extends DeletionGuards {
  readonly namespace: string;
  /** Labels of the namespace; its name alone, if it could not be read. */
  readonly labels: Labels;
  /** Of evictions in the namespace: a webhook that cannot be called for these cannot be called for deletions. */
  readonly evictions: Guard;
}

export interface DeletionGuard {
  /**
   * `policy`: each is refused. `webhook`: the budget decides. `down`: the webhook cannot be called, each is refused.
   * `none`: each is executed. `unknown`: it was not seen.
   */
  readonly by: "policy" | "webhook" | "down" | "none" | "unknown";
  readonly message: string;
  /** How to install or fix a guard; "" if there is nothing to do. */
  readonly remedy: string;
}

const CHOOSE =
  "docs/guides/budgets.md#guard-deletions-too: infra/manifests/pod-deletion-webhook or infra/manifests/pod-deletion-policy";

/** The guard of pods with these labels. */
export function judgeDeletionGuard(facts: DeletionFacts, podLabels: Labels): DeletionGuard {
  const { namespace, labels, hooks, policies, unread } = facts;
  const concerns = (one: Pick<Hook, "namespaceSelector" | "objectSelector">): boolean =>
    matchesSelector(one.namespaceSelector, labels) && matchesSelector(one.objectSelector, podLabels);
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

function judgeHook({ name, failsOpen }: Hook, { evictions }: DeletionFacts): DeletionGuard {
  if (evictions.reason !== "WebhookDown")
    return { by: "webhook", message: `${name} asks the disruption budget about each deletion of a pod`, remedy: "" };
  const { message, remedy } = evictions;
  return failsOpen
    ? { by: "none", message: `${name} fails open: deletions ask no budget while ${message}`, remedy }
    : { by: "down", message: `${name} fails closed: deletions are refused while ${message}`, remedy };
}
