/** What docs/reference/node-policy.md says of each reason why a node waits, and how its attempt ended. */
import type { FailureReason, SkipReason } from "../../../reconciler/nodes/snapshot.ts";

export const SKIP_TEXTS: Readonly<Record<SkipReason, string>> = {
  PolicyInvalid: "The policy cannot be obeyed; the message says why",
  Disabled: "`spec.enabled` is `false`",
  Frozen: "A person must [clear the freeze](../operate/nodes.md#clear-a-freeze)",
  WindowClosed: "The policy's window is closed",
  CheckFailing: "A check fails; the message has its first series",
  CheckUnreachable: "A check has no answer; the message says why",
  CheckPending: "A check has not passed often enough in a row yet",
  LimitReached:
    "The limit of active nodes is reached. The message names nodes that count without being active, and what ends that",
  SeveralPolicies: "Two policies select the node",
  NotManaged: "The node has lost its label",
  NodeTerminating: "The node is being deleted",
  BeingRemoved: "An autoscaler is removing the node, as its taint says",
  ShadowUnreadable: "The shadow has values that cannot be read",
  AgentSilent: "The node has no shadow yet, or its agent has not reported",
  Recovering: "The node is on its way back to `Idle`, or we still cordon it",
  BackOff: "Its last attempt failed. After failure n it waits more than 2^n minutes, at most a day",
  Deferred: "The same, after an attempt that was not finished, such as a drain that timed out",
  NodeNotReady: "The node is not Ready",
  OtherZoneFirst: "The nodes of another zone are finished first",
  UnhealthyPods: "A pod on the node cannot start",
  RolloutInProgress: "Another zone of a group with pods here is rolling out",
  DrainBlocked: "A drain would not succeed now; the message names the pods and their budgets",
  NoPlaceForPods:
    "No other node of its zone is Ready and schedulable, and two of its pods share a budget: the second would wait for the first for ever",
};

export const FAILURE_TEXTS: Readonly<Record<FailureReason, readonly [meaning: string, follows: string]>> = {
  UpdateFailed: [
    "The agent reported `ErrorReset`",
    "Before the reboot: the node is tried again later. After it: a failure, which counts towards `maxFailed`",
  ],
  StagingTimeout: ["The update was not staged within `stageSeconds`", "The node is tried again later"],
  HeldTooLong: ["The node could not be drained for `holdSeconds` after staging", "It goes to the end of the queue"],
  DrainTimeout: [
    "The drain did not end in time; the message names the pods that are left",
    "The node is uncordoned and tried again later",
  ],
  RebootTimeout: ["The node has not come back, or its agent has not reported, within `rebootSeconds`", "Frozen"],
  ReturnTimeout: ["The node came back and did not become Ready within `rebootSeconds`", "Frozen"],
  HealthTimeout: [
    "The node was not well, or its pods not back, within `health.timeoutSeconds`",
    "A failure; the node keeps its new version and serves",
  ],
  RecoveryTimeout: ["The agent did not report `Idle` within `recoverSeconds`", "The slot is free if the node serves"],
  NodeGone: ["The node was deleted", "The slot is free"],
  NoLongerManaged: ["The node lost its label", "It goes back into service; if it reboots, once it is Ready again"],
  StartDropped: ["The start was not written, and is not wanted any more", "The slot is free"],
  TakenOver: [
    "Another policy, or one without its earlier status, found the node before its reboot",
    "The node is uncordoned, and begins again under this policy",
  ],
  Frozen: [
    "The policy froze while the node was being drained",
    "The node is uncordoned and tried again after the freeze",
  ],
};

/** Fields of a NodeUpdatePolicy whose description in the definition leaves something to say here. */
export const POLICY_TEXTS: Readonly<Record<string, string>> = {
  "window.cron":
    "Second, minute, hour, day of month, month, weekday [, year]. 1 is Sunday; names are safer. Day and weekday must both match",
  "drain.timeoutSeconds": "How long a drain may take",
  "deadlines.stageSeconds": "How long staging may take",
  "deadlines.holdSeconds": "How long a staged node may wait for its drain",
  "deadlines.rebootSeconds": "How long a node may take to come back",
  "deadlines.recoverSeconds": "How long the agent may take to report `Idle`",
  checks: "Each has the fields of a gate's check, without `failureThreshold`, `baseline` and placeholders",
};
