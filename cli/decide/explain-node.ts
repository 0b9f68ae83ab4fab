/** Explains a node by the records of its update, in its shadow and in the status of its policy. Pure. */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import type { UpdateNode } from "../../reconciler/nodes/node.ts";
import { deadlineOf } from "../../reconciler/nodes/state-machine.ts";
import { type ActiveNode, type NodePhase, type Policy, POLICY_NAME } from "../../reconciler/nodes/policy.ts";
import { either, how } from "../../reconciler/model/remedy.ts";
import { hasUpdate } from "../../reconciler/nodes/skip.ts";
import { SKIP_REASONS, type SkipReason } from "../../reconciler/nodes/snapshot.ts";
import { allow, explainDenial, type Explanation } from "./answer.ts";

const UPDATE = "update";

export interface NodeFacts {
  readonly node: UpdateNode;
  readonly policy: Policy | undefined;
  /** The namespace of the shadows. */
  readonly namespace: string;
}

/** Undefined for a node that has nothing to do with node updates. */
export function explainNode(facts: NodeFacts): Explanation | undefined {
  const { node } = facts;
  return node.managed || node.shadow ? (explainActive(facts) ?? explainIdle(facts)) : undefined;
}

const DRAIN = "drain";

/** The answers about the evictions of a node's pods, each by its pod. */
type PodAnswers = readonly (readonly [pod: string, eviction: Explanation])[];

/** The verdict on a drain of these pods: each cause once, with the pods that it keeps; then those that may go. */
export function explainDrain(pods: PodAnswers): Explanation[] {
  if (pods.length === 0) return [allow(DRAIN, "no pod of a StatefulSet runs on it", "Can be drained")];
  const kept = Map.groupBy(
    pods.filter(([, { allowed }]) => !allowed),
    ([, { reason, message }]) => `${reason} ${message}`,
  );
  const denials = [...kept.values()].flatMap((own) => {
    const [, first] = own[0] ?? [];
    return first ? [{ ...first, question: DRAIN, message: `${namesOf(own)}: ${first.message}` }] : [];
  });
  const free = pods.filter(([, { allowed }]) => allowed);
  const isWhole = denials.length === 0;
  const rest = allow(DRAIN, namesOf(free), isWhole ? "Can be drained" : "These pods can be evicted");
  return [...denials, ...(free.length > 0 ? [rest] : [])];
}

const namesOf = (pods: PodAnswers): string => pods.map(([name]) => name).join(", ");

function explainIdle(facts: NodeFacts): Explanation {
  const { node, policy } = facts;
  if (node.shadow?.status && !hasUpdate(node))
    return allow(UPDATE, `${describeVersions(node)}: there is nothing to update`, "Up to date");
  return policy
    ? explainWaiting(facts, policy)
    : explainRefusal(facts, { reason: "NoPolicy", message: "there is no NodeUpdatePolicy" });
}

function explainActive(facts: NodeFacts): Explanation | undefined {
  const { node, policy } = facts;
  const entry = policy?.status.active.find((one) => one.node === node.name);
  return policy && entry && explainPhase(facts, policy, entry);
}

function describeVersions({ shadow }: UpdateNode): string {
  const { status } = shadow ?? {};
  if (!status) return "its agent has not reported yet";
  const { current_version: from, target_version: to } = status;
  return from === to ? `it runs ${from}` : `it runs ${from} and will get ${to}`;
}

function explainPhase(facts: NodeFacts, policy: Policy, entry: ActiveNode): Explanation {
  const { node } = facts;
  const { phase, since, from, to, waitsFor } = entry;
  const drain = phase === "Draining" ? node.shadow?.status?.drain : undefined;
  const blocked = drain?.blocked ?? [];
  const names = blocked.map((pod) => `${pod.namespace}/${pod.name} (${pod.reason})`).join(", ");
  const { rule, remedy } = PHASE_RULES[phase];
  const began = parseTimestamp(since);
  return explainDenial({
    question: UPDATE,
    reason: phase,
    rule,
    message: [
      `it is updated from ${from} to ${to}`,
      ...(waitsFor === undefined ? [] : [waitsFor]),
      ...(drain ? [`${drain.remaining} pods are left: ${names}`] : []),
    ].join("; "),
    objects: blocked.map(({ name }) => ({ kind: "Pod", name })),
    since,
    until: began === undefined ? undefined : formatTimestamp(began + deadlineOf(phase, policy) * 1000),
    remedy: remedy(contextOf(facts)),
  });
}

/** Explains a waiting node by the policy's own list; a freeze comes first. */
function explainWaiting(facts: NodeFacts, policy: Policy): Explanation {
  const { frozen, waiting, message } = policy.status;
  const own = waiting.find((one) => one.node === facts.node.name);
  const more = own && own.reason !== "Frozen" ? `; ${own.reason}: ${own.message}` : "";
  if (frozen)
    return explainRefusal(facts, {
      reason: "Frozen",
      message: `since ${frozen.at}: ${frozen.message}${more}`,
      since: frozen.at,
    });
  if (own && isReason(own.reason)) return explainRefusal(facts, { reason: own.reason, message: own.message });
  return explainRefusal(facts, { reason: "Unrecorded", message: message || "the node is not listed" });
}

const isReason = (text: string): text is SkipReason => (SKIP_REASONS as readonly string[]).includes(text);

interface Refusal {
  readonly reason: SkipReason | "Unrecorded" | "NoPolicy";
  readonly message: string;
  readonly since?: string;
}

const MORE_RULES: Readonly<Record<Exclude<Refusal["reason"], SkipReason>, NodeRules>> = {
  Unrecorded: {
    rule: "the reconciler has recorded why the node waits",
    remedy: () => "wait for the next tick; the policy lists 50 nodes at most",
  },
  NoPolicy: {
    rule: "there is a NodeUpdatePolicy",
    remedy: () => "write one: docs/reference/node-policy.md",
  },
};

function explainRefusal(facts: NodeFacts, { reason, message, since }: Refusal): Explanation {
  const { rule, remedy } = isReason(reason) ? SKIP_RULES[reason] : MORE_RULES[reason];
  return explainDenial({
    question: UPDATE,
    reason,
    rule,
    message: `${describeVersions(facts.node)}; ${message}`,
    objects: [],
    since,
    remedy: remedy(contextOf(facts)),
  });
}

const contextOf = ({ node, policy, namespace }: NodeFacts): NodeContext => ({
  node: node.name,
  freeze: policy?.status.frozen?.id ?? "",
  namespace,
});

interface NodeContext {
  readonly node: string;
  /** The id of the policy's freeze; "" without one. */
  readonly freeze: string;
  /** The namespace of the shadows. */
  readonly namespace: string;
}

interface NodeRules {
  readonly rule: string;
  readonly remedy: (context: NodeContext) => string;
}

const EDIT_POLICY = `kubectl edit nodeupdatepolicy ${POLICY_NAME}`;
const patchPolicy = (spec: object): string =>
  `kubectl patch nodeupdatepolicy ${POLICY_NAME} --type=merge -p '${JSON.stringify({ spec })}'`;
const lookAtAgent = ({ node, namespace }: NodeContext): string =>
  how(
    "look at its agent",
    `kubectl -n ${namespace} get pods --field-selector spec.nodeName=${node} -l brupop.bottlerocket.aws/component=agent`,
  );
const lookAtPods = ({ node }: NodeContext): string => `kubectl get pods -A --field-selector spec.nodeName=${node}`;
const wait = (): string => "wait";
const waitForPods = (context: NodeContext): string =>
  either("wait for the pods", how("look at them", lookAtPods(context)));
const waitForAgent = (context: NodeContext): string => either("wait", lookAtAgent(context));
const freeDrain = ({ node }: NodeContext): string =>
  how("make the pods ready that its budgets count", `zonewise drain-order ${node}`);

/**
 * For each reason why a node is not updated now: the condition that must hold, and the smallest change that helps.
 */
export const SKIP_RULES: Readonly<Record<SkipReason, NodeRules>> = {
  PolicyInvalid: { rule: "the policy is valid", remedy: () => EDIT_POLICY },
  Disabled: {
    rule: "the policy is enabled",
    remedy: () => patchPolicy({ enabled: true }),
  },
  Frozen: {
    rule: "fewer nodes than maxFailed have failed after their reboot",
    remedy: ({ freeze }) => how("look at the node that failed, then end the freeze", patchPolicy({ unfreeze: freeze })),
  },
  WindowClosed: {
    rule: "the window of the policy is open",
    remedy: () => either("wait for it", how("change spec.window", EDIT_POLICY)),
  },
  LimitReached: {
    rule: "fewer nodes than maxConcurrent are active",
    remedy: () => either("wait for the active nodes", how("raise spec.maxConcurrent", EDIT_POLICY)),
  },
  NotManaged: {
    rule: "the node has the label of managed nodes",
    remedy: ({ node }) => `kubectl label node ${node} bottlerocket.aws/updater-interface-version=2.0.0`,
  },
  NodeTerminating: { rule: "the node stays", remedy: () => "wait until it is gone" },
  BeingRemoved: {
    rule: "no autoscaler removes the node",
    remedy: () => "wait until it is gone, or remove the taint",
  },
  ShadowUnreadable: {
    rule: "the shadow of the node can be read",
    remedy: ({ node, namespace }) => `kubectl -n ${namespace} get brs brs-${node} -o yaml`,
  },
  AgentSilent: {
    rule: "the agent of the node has reported",
    remedy: (context) => lookAtAgent(context),
  },
  Recovering: { rule: "an earlier attempt has ended", remedy: wait },
  BackOff: { rule: "the time after a failed attempt is over", remedy: wait },
  Deferred: { rule: "the time after an attempt that was given up is over", remedy: wait },
  NodeNotReady: { rule: "the node is Ready", remedy: ({ node }) => `kubectl describe node ${node}` },
  OtherZoneFirst: {
    rule: "the nodes of the zone under way are finished first",
    remedy: wait,
  },
  UnhealthyPods: {
    rule: "the pods of the node are healthy",
    remedy: (context) => how("make them ready", lookAtPods(context)),
  },
  RolloutInProgress: {
    rule: "no rollout is under way in another zone of a group with pods here",
    remedy: () => how("wait for the rollout", "zonewise status -A"),
  },
  DrainBlocked: {
    rule: "a drain would succeed now",
    remedy: freeDrain,
  },
  NoPlaceForPods: {
    rule: "another node of its zone can run its pods, or no two pods of the node have the same budget",
    remedy: () => "make another node of the zone Ready and schedulable, or set spec.drain.onTimeout to Reboot",
  },
};

export const PHASE_RULES: Readonly<Record<NodePhase, NodeRules>> = {
  Starting: { rule: "the start was written to the shadow", remedy: wait },
  Staging: {
    rule: "the agent has downloaded and activated the update",
    remedy: waitForAgent,
  },
  Holding: {
    rule: "the node is Ready and a drain would succeed now",
    remedy: freeDrain,
  },
  Draining: {
    rule: "all pods that can be evicted have left the node",
    remedy: waitForPods,
  },
  Rebooting: { rule: "the host has booted again", remedy: ({ node }) => `wait, or look at the host of ${node}` },
  Returning: {
    rule: "the node is Ready at the new version",
    remedy: ({ node }) => either("wait", how("look at the node", `kubectl describe node ${node}`)),
  },
  Monitoring: {
    rule: "the node has been Ready for health.minReadySeconds, and its pods are back",
    remedy: waitForPods,
  },
  Recovering: {
    rule: "the node is back in service after an attempt that failed",
    remedy: waitForAgent,
  },
};
