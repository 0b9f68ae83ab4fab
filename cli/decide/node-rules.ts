/**
 * For each reason why a node is not updated now: the condition that must hold, and the smallest change that helps.
 * Pure.
 */
import { either, how } from "../../reconciler/model/remedy.ts";
import type { SkipReason } from "../../reconciler/nodes/snapshot.ts";
import type { NodePhase } from "../../reconciler/nodes/policy-status.ts";

interface NodeContext {
  readonly node: string;
  readonly policy: string;
  /** The id of the policy's freeze; "" without one. */
  readonly freeze: string;
  /** The namespace of the shadows. */
  readonly namespace: string;
}

export interface NodeRules {
  readonly rule: string;
  readonly remedy: (context: NodeContext) => string;
}

const editPolicy = ({ policy }: NodeContext): string => `kubectl edit nodeupdatepolicy ${policy}`;
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

export const SKIP_RULES: Readonly<Record<SkipReason, NodeRules>> = {
  PolicyInvalid: { rule: "the policy is valid", remedy: editPolicy },
  Disabled: {
    rule: "the policy is enabled",
    remedy: ({ policy }) => `kubectl patch nodeupdatepolicy ${policy} --type=merge -p '{"spec":{"enabled":true}}'`,
  },
  Frozen: {
    rule: "fewer nodes than maxFailed have failed after their reboot",
    remedy: ({ policy, freeze }) =>
      how(
        "look at the node that failed, then end the freeze",
        `kubectl patch nodeupdatepolicy ${policy} --type=merge -p '{"spec":{"unfreeze":"${freeze}"}}'`,
      ),
  },
  WindowClosed: {
    rule: "the window of the policy is open",
    remedy: (context) => either("wait for it", how("change spec.window", editPolicy(context))),
  },
  CheckFailing: {
    rule: "the checks of the policy pass",
    remedy: (context) => either("repair what they measure", how("change spec.checks", editPolicy(context))),
  },
  CheckUnreachable: { rule: "Prometheus answers the checks of the policy", remedy: () => "make Prometheus answer" },
  CheckPending: { rule: "the checks of the policy have passed often enough in a row", remedy: wait },
  LimitReached: {
    rule: "fewer nodes than maxConcurrent are active",
    remedy: (context) => either("wait for the active nodes", how("raise spec.maxConcurrent", editPolicy(context))),
  },
  SeveralPolicies: {
    rule: "one policy selects the node",
    remedy: (context) => how("change spec.nodeSelector of all except one", editPolicy(context)),
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
