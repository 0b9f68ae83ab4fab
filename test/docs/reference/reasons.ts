/** What docs/reference/reasons.md says of each reason to wait. A new reason does not compile without its row. */
import type { Reason } from "../../../reconciler/model/decision.ts";

/** What the reason means, and what the reader does. */
export const REASON_TEXTS: Readonly<Record<Reason, readonly [meaning: string, help: string]>> = {
  UpdateStrategyNotOnDelete: [
    "The StatefulSet controller would replace the pods by itself",
    "Set `updateStrategy.type: OnDelete`",
  ],
  GroupNameEmpty: [
    "The label `rollout-group` has no value. The StatefulSet belongs to no group: it is neither rolled out nor scaled, and `prepare-downscale` refuses its downscales",
    "Give the label the name of the group, or remove it",
  ],
  TooManyZones: [
    "The group has more than 32 zones. It is neither rolled out nor scaled, and no budget lets a pod of it go",
    "Move some zones to another group",
  ],
  LabelsTooLong: [
    "The labels of a zone and of its template, its selector, images and Service have more than 16,384 characters together. They are not kept in memory: the group is neither rolled out nor scaled, and no budget lets a pod of it go",
    "Remove labels from it or its template",
  ],
  TurnAwaited: [
    "The group has waited 30 s for its turn: 8 groups of its namespace, or 32 overall, are in slow steps",
    "Wait. If it lasts, find the groups whose pods or webhooks do not answer",
  ],
  RevisionUnknown: ["The StatefulSet's status names no revision", "Check kube-controller-manager"],
  StatusNotObserved: [
    "The StatefulSet controller has not observed the latest spec",
    "Wait. If it lasts, check kube-controller-manager",
  ],
  ZoneTerminating: [
    "A zone is being deleted. Until it is gone, no pod of its group is deleted and no zone is scaled",
    "Wait. Look for a stuck finalizer",
  ],
  MultipleZonesNotReady: [
    "Pods of two or more zones are not ready. Outdated pods that serve nothing are still replaced, zone by zone. Pods with a working container are left alone",
    "Fix or revert the template, or make all zones but one ready. If pods of several zones work in part, delete one zone's by hand",
  ],
  OtherZoneNotReady: [
    "Another zone, paused or not, has pods that are not ready or more pods than replicas, or a downscale of it was admitted and is not stored yet. A zone that is to shrink also waits while another zone rolls out, shrinks or has a pod that never became ready",
    "Wait, or fix the zone that the message names",
  ],
  ZoneOrphaned: [
    "A StatefulSet was deleted without its pods (`--cascade=orphan`), or lost its label, and some of the pods it left are not ready or missing. Nobody recreates them, so no other zone may lose pods",
    "Create the StatefulSet again (it adopts its pods), or give it back its label. If the zone is to go, delete all its pods. Pods that its selector does not match, but which occupy the names it needs: delete them",
  ],
  MaxUnavailableReached: [
    "The zone has as many unavailable pods as it may. Ordinary during a rollout",
    "Wait. If a pod is in `CrashLoopBackOff` or `ImagePullBackOff`, the new template is at fault: `zonewise undo GROUP`, or fix it",
  ],
  ZoneNotReady: [
    "Updated pods are not ready yet. Ordinary during a rollout",
    "Wait. If the new template is at fault: `zonewise undo GROUP`, or fix it",
  ],
  ZonePaused: ["A paused zone has outdated pods", "`zonewise resume GROUP` once they may be updated"],
  WindowClosed: [
    "The zone's rollout window is closed, or a freeze lasts. The message says until when. Pods that are not ready, and templates that were taken back, do not wait",
    "Wait, or [roll out now](../guides/windows.md#roll-out-now)",
  ],
  WindowInvalid: [
    "The zone's rollout window cannot be read, or does not open within 10 years",
    "Correct the annotation that the message names",
  ],
  BudgetSpent: [
    "The disruption budget allows no further pod now. A pod whose eviction was allowed counts as not ready until it is gone, for 2 minutes at most",
    "Wait. The message and `status.disruptedPods` of the budget name the pod",
  ],
  BudgetUnusable: [
    "The pod's budget is invalid or does not match its StatefulSets, or two budgets select the pod",
    "Fix the budget that the Event names",
  ],
  GateWaiting: [
    "A [gate's](../guides/gates.md) checks have not passed yet. The message names the check and the time of the next query",
    "Wait, or look at the series in the message. `zonewise bypass` lets zones begin without gates for a time",
  ],
  GateFailed: [
    "A gate's check failed too often. No further zone begins with these templates",
    "Fix or revert the template, or `zonewise retry GATE`",
  ],
  GateInvalid: [
    "Prometheus refuses the gate's expression, a placeholder has no value, or the spec cannot be read",
    "Correct the gate. `mode: Observe` makes it wait for nothing",
  ],
  GateUnreachable: [
    "Prometheus cannot answer a check, or the gates cannot be listed",
    "Fix what the message names. `zonewise bypass` passes the gates for a time; `onError: Proceed` continues without an answer",
  ],
  LeaderNotFound: ["The leader is not in the group", "Correct the annotation"],
  LeaderCycle: ["Zones follow each other in a cycle", "Correct the annotations"],
  LeaderAndMirror: ["The zone has both a leader and a resource to mirror", "Remove one of them"],
  LeaderNotReady: ["The zone may grow only once all pods of its leader are ready", "Wait"],
  MinTimeBetweenZones: ["Another zone was scaled down recently. The message says how long to wait", "Wait"],
  MinTimeUnknown: [
    "A timestamp, the zone's label, the zone tracker or the group's Lease cannot be read, so the zone does not shrink",
    "Fix what the message names",
  ],
  ReferenceUnreadable: [
    "The mirrored resource cannot be read",
    "Does it exist, and have a scale subresource? May the reconciler's ServiceAccount read it?",
  ],
  DelayInvalid: [
    "The delay or the URL cannot be read, or `serviceName` is not a DNS label. The zone neither grows nor shrinks",
    "Fix what the message names",
  ],
  PrepareFailed: [
    "A pod refused to prepare for its downscale, or did not answer",
    "Look at the pod that the message names, with its URL and status code",
  ],
  DelayNotReached: ["The zone's last pods have not been prepared for long enough", "Wait as long as the message says"],
  ScaleRefused: ["The API server or a webhook refused the change of replicas", "Do as the refusal in the message says"],
};

/** What an Event means that is no reason to wait; by its name and the kind of object that it is about. */
export const EVENT_TEXTS: Readonly<Record<string, readonly [on: string, meaning: string]>> = {
  RolloutStarted: [
    "the group's first StatefulSet, PhasedRollout",
    "The first pod of a rollout was deleted, or a phased rollout began its first step",
  ],
  PodReplaced: ["StatefulSet", "A pod was deleted to be replaced"],
  ZoneUpdated: ["StatefulSet", "All pods of the zone are updated and ready"],
  RolloutCompleted: [
    "the group's first StatefulSet, PhasedRollout",
    "All zones of the group, or all pods of the StatefulSet, are updated and ready",
  ],
  ZoneScaled: ["StatefulSet", "The zone's replicas were changed"],
  InvalidAnnotation: [
    "StatefulSet",
    "An annotation or label cannot be read, or has no effect alone. The message says what applies instead",
  ],
  ReconcileFailed: ["the group's first StatefulSet", "The group could not be reconciled. The message has the error"],
  DownscaleUndone: ["StatefulSet", "An admitted downscale never happened, and its pods were told that they stay"],
  DownscaleNotUndone: ["StatefulSet", "The same, but some pods have not answered yet. DELETE is repeated"],
  DownscaleNoteUnreadable: [
    "Lease",
    "An entry of `zonewise/pending-downscales` cannot be read and is dropped: somebody edited it. If its pods are prepared and stay, send them DELETE",
  ],
  GatePassed: ["RolloutGate", "All checks of the gate have passed, and the zone may begin"],
  GateInvalid: ["RolloutGate", "Prometheus refuses an expression, or the gate's group has no zones"],
  GatesBypassed: [
    "StatefulSet, RolloutGate",
    "A [bypass](../guides/gates.md#bypass-gates-for-a-time) counts: zones may begin without gates until the time in the message",
  ],
  BypassRefused: ["StatefulSet", "The bypass ended more than 24 h ahead when a gate first saw it. It bypasses nothing"],
  BudgetInvalid: [
    "ZoneAwarePodDisruptionBudget",
    "The stored budget is invalid. No pod that it selects is evicted or deleted",
  ],
  DeletionDenied: [
    "Pod",
    "A deletion was refused because the budget says no, or cannot be obeyed. The message says who asked, and why. Only with [the deletion webhook](../guides/budgets.md#guard-deletions-too)",
  ],
  UpdateStarted: ["Node", "Its operating system is about to be updated"],
  UpdateHeld: ["Node", "The update is staged, and the reboot waits; the message says for what"],
  NodeUpdated: ["Node", "It runs the new version, and its pods are back"],
  UpdateAbandoned: [
    "Node",
    "The attempt ended without an update. The message begins with [how it ended](node-policy.md#how-an-attempt-ends)",
  ],
  Uncordoned: ["Node", "A cordon of ours was removed"],
  Frozen: [
    "NodeUpdatePolicy, PhasedRollout",
    "Of a policy: no update starts until a person clears it. Of a PhasedRollout that is being deleted with `onDelete: freeze`: the partition stays",
  ],
  Unfrozen: ["NodeUpdatePolicy", "A person has cleared the freeze"],
  PolicyInvalid: ["NodeUpdatePolicy", "The policy cannot be obeyed; the message says why"],
  CannotManage: ["PhasedRollout", "The StatefulSet cannot be managed; the message says why"],
  Suspended: ["PhasedRollout", "`skipCheck` is set: the StatefulSet rolls without checks"],
  RolloutRestarted: ["PhasedRollout", "The template changed again before all pods were updated"],
  RollingBack: ["PhasedRollout", "The template was reverted: pods return to it without checks"],
  RolledBack: ["PhasedRollout", "They have returned"],
  RolloutStalled: ["PhasedRollout", "Too many checks failed, or a step took longer than `progressDeadlineSeconds`"],
  PrometheusError: ["PhasedRollout", "A check got no answer; the message says why"],
  SuccessWhenUnset: ["PhasedRollout", "`successWhen` is not set; once for each change of the spec"],
  StepHeld: ["PhasedRollout", "The checks passed, but a disruption budget keeps the next pod"],
  PartitionRaised: ["PhasedRollout", "The partition was lower than the checks allow, and was raised again"],
  BrokenPodReplaced: ["PhasedRollout", "A pod of neither revision could not come up, and was deleted"],
  Released: [
    "PhasedRollout",
    "It is being deleted and the StatefulSet has its original partition again, or `skipCheck` is set. The message counts the pods released without checks",
  ],
};
