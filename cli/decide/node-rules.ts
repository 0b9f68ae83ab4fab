/** For each reason why a node is not updated now: what must hold, and the smallest change that helps. Pure. */
import type { SkipReason } from "../../reconciler/nodes/snapshot.ts";
import type { NodePhase } from "../../reconciler/nodes/policy-status.ts";

export interface NodeTold {
  readonly node: string;
  readonly policy: string;
  /** Of the policy's freeze; "" without one. */
  readonly freeze: string;
  /** Where the shadows are. */
  readonly namespace: string;
}

export interface NodeRules {
  readonly rule: string;
  readonly remedy: (told: NodeTold) => string;
}

const editPolicy = ({ policy }: NodeTold): string => `kubectl edit nodeupdatepolicy ${policy}`;
const lookAtAgent = ({ node, namespace }: NodeTold): string =>
  `kubectl -n ${namespace} get pods --field-selector spec.nodeName=${node} -l brupop.bottlerocket.aws/component=agent`;
const lookAtPods = ({ node }: NodeTold): string => `kubectl get pods -A --field-selector spec.nodeName=${node}`;
const wait = (): string => "wait";

export const SKIP_RULES: Readonly<Record<SkipReason, NodeRules>> = {
  PolicyInvalid: { rule: "the policy can be obeyed", remedy: editPolicy },
  Disabled: {
    rule: "the policy is enabled",
    remedy: ({ policy }) => `kubectl patch nodeupdatepolicy ${policy} --type=merge -p '{"spec":{"enabled":true}}'`,
  },
  Frozen: {
    rule: "fewer nodes than maxFailed have failed after their reboot",
    remedy: ({ policy, freeze }) =>
      `look at the node that failed, then: kubectl patch nodeupdatepolicy ${policy} --type=merge -p '{"spec":{"unfreeze":"${freeze}"}}'`,
  },
  WindowClosed: { rule: "the window of the policy is open", remedy: (told) => `wait for it, or change spec.window: ${editPolicy(told)}` },
  CheckFailing: {
    rule: "the checks of the policy pass",
    remedy: (told) => `get what they measure back in order, or change spec.checks: ${editPolicy(told)}`,
  },
  CheckUnreachable: { rule: "Prometheus answers the checks of the policy", remedy: () => "get Prometheus to answer" },
  CheckPending: { rule: "the checks of the policy have had their good answers in a row", remedy: wait },
  LimitReached: {
    rule: "fewer nodes than maxConcurrent are active",
    remedy: (told) => `wait for the active nodes, or raise spec.maxConcurrent: ${editPolicy(told)}`,
  },
  SeveralPolicies: {
    rule: "one policy selects the node",
    remedy: (told) => `change spec.nodeSelector of all but one: ${editPolicy(told)}`,
  },
  NotManaged: {
    rule: "the node has the label of managed nodes",
    remedy: ({ node }) => `kubectl label node ${node} bottlerocket.aws/updater-interface-version=2.0.0`,
  },
  NodeTerminating: { rule: "the node stays", remedy: () => "wait until it is gone" },
  BeingRemoved: { rule: "no autoscaler removes the node", remedy: () => "wait until it is gone, or take the taint away" },
  ShadowUnreadable: {
    rule: "the shadow of the node can be read",
    remedy: ({ node, namespace }) => `kubectl -n ${namespace} get brs brs-${node} -o yaml`,
  },
  AgentSilent: { rule: "the agent of the node has reported", remedy: (told) => `see if it runs: ${lookAtAgent(told)}` },
  Recovering: { rule: "an earlier attempt has ended", remedy: wait },
  BackOff: { rule: "the time after a failed attempt is over", remedy: wait },
  Deferred: { rule: "the time after an attempt that was given up is over", remedy: wait },
  NodeNotReady: { rule: "the node is Ready", remedy: ({ node }) => `kubectl describe node ${node}` },
  OtherZoneFirst: {
    rule: "the nodes of the zone under way are finished first",
    remedy: (told) => `wait, or set spec.zonesInOrder to false: ${editPolicy(told)}`,
  },
  UnhealthyPods: { rule: "the pods of the node are healthy", remedy: (told) => `make them ready: ${lookAtPods(told)}` },
  RolloutInProgress: {
    rule: "no rollout is under way in another zone of a group with pods here",
    remedy: () => "wait for the rollout: zonewise status -A",
  },
  DrainBlocked: {
    rule: "a drain would succeed now",
    remedy: (told) => `make the pods ready that its budgets count: zonewise drain-order ${told.node}`,
  },
};

export const PHASE_RULES: Readonly<Record<NodePhase, NodeRules>> = {
  Starting: { rule: "the start was written to the shadow", remedy: wait },
  Staging: {
    rule: "the agent has downloaded and activated the update",
    remedy: (told) => `wait, or look at the agent: ${lookAtAgent(told)}`,
  },
  Holding: {
    rule: "the node is Ready and a drain would succeed now",
    remedy: (told) => `make the pods ready that its budgets count: zonewise drain-order ${told.node}`,
  },
  Draining: {
    rule: "all pods that can be evicted have left the node",
    remedy: (told) => `wait for the pods, or look: ${lookAtPods(told)}`,
  },
  Rebooting: { rule: "the host has booted again", remedy: ({ node }) => `wait, or look at the host of ${node}` },
  Returning: { rule: "the node is Ready at the new version", remedy: ({ node }) => `wait, or kubectl describe node ${node}` },
  Monitoring: {
    rule: "the node has been Ready for health.minReadySeconds, and its work is back",
    remedy: (told) => `wait for the pods, or look: ${lookAtPods(told)}`,
  },
  Recovering: {
    rule: "the node is back in service after an attempt that failed",
    remedy: (told) => `wait, or look at the agent: ${lookAtAgent(told)}`,
  },
};
