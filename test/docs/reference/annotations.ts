/** What docs/reference/annotations.md says of each label and annotation; the generator names a missing one. */
type Row = readonly [name: string, kind: string, meaning: string];

/** A section of the page: where the names are written, and each with its meaning. */
export const ANNOTATION_TEXTS: Readonly<Record<string, readonly Row[]>> = {
  "On a StatefulSet: rollouts": [
    [
      "rollout-group",
      "label",
      "The group: StatefulSets of a namespace with the same value are its zones. Give it to the pods too, in the template: it identifies pods that a deleted StatefulSet leaves behind (`ZoneOrphaned`). An empty value is refused (`GroupNameEmpty`)",
    ],
    [
      "rollout-max-unavailable",
      "annotation",
      "How many pods of the zone may be unavailable while it rolls out: an integer above 0, or `1%` to `100%` of the replicas, rounded down, at least 1. Default 1; an invalid value counts as 1",
    ],
    [
      "grafana.com/rollout-paused",
      "annotation",
      "`true`: no pod of the zone is deleted. The other zones still roll out while this one is healthy",
    ],
    [
      "zonewise.dev/rollout-accelerate",
      "annotation",
      "`true`: batches begin with one pod and double up to `rollout-max-unavailable` while pods come up healthy ([rollouts](../guides/rollouts.md#start-carefully-then-fast))",
    ],
    [
      "zonewise.dev/rollout-window",
      "annotation",
      "When pods may be replaced: a cron expression of second, minute, hour, day of month, month, weekday [, year] ([windows](../guides/windows.md)). One that cannot be read holds the zone (`WindowInvalid`)",
    ],
    [
      "zonewise.dev/rollout-window-duration",
      "annotation",
      "How long the window stays open after it opened: a Go duration from `1s` to `744h`. Not with an expression whose seconds run on, such as `* * 2-4 * * *`",
    ],
    [
      "zonewise.dev/rollout-window-time-zone",
      "annotation",
      "The window's time zone, such as `Europe/Berlin`. Default `UTC`",
    ],
    [
      "zonewise.dev/rollout-freezes",
      "annotation",
      "When no pod is replaced: intervals `FROM/TO` of RFC 3339 times, separated by commas; with or without a window",
    ],
    [
      "zonewise.dev/bypass-gates-until",
      "annotation",
      "RFC 3339, at most 24 h ahead: until then the zone may begin [without its gates](../guides/gates.md#bypass-gates-for-a-time). `zonewise bypass` writes it",
    ],
    ["zonewise.dev/bypass-gates-reason", "annotation", "Why, shown in Events and statuses; 200 characters"],
  ],
  "On a StatefulSet: downscales": [
    ["grafana.com/no-downscale", "label, also on Deployments and ReplicaSets", "`true`: a downscale is refused"],
    ["grafana.com/prepare-downscale", "label", "`true`: the webhook `prepare-downscale` prepares pods before they go"],
    [
      "grafana.com/prepare-downscale-http-path",
      "annotation",
      "The path for that: `POST` before a pod goes, `DELETE` if it stays",
    ],
    ["grafana.com/prepare-downscale-http-port", "annotation", "The port for that"],
    [
      "grafana.com/min-time-between-zones-downscale",
      "annotation, or a label",
      "A Go duration such as `12h` between downscales of two zones. The annotation wins. The reconciler goes by the zone that is to shrink, the webhook by the zone that shrank last. A downscale by hand without the webhook leaves no trace",
    ],
    [
      "grafana.com/last-downscale",
      "annotation",
      "Written by Zonewise, RFC 3339: when the zone was last scaled down, in the same write as the replicas. After a downscale through `/scale` the reconciler adds it",
    ],
  ],
  "On a StatefulSet: scaling": [
    [
      "grafana.com/rollout-downscale-leader",
      "annotation",
      "The zone whose replicas this one takes over. Chains are allowed (c follows b follows a), cycles are not",
    ],
    [
      "grafana.com/rollout-upscale-only-when-leader-ready",
      "annotation",
      "`true`: grow only once all pods of the leader are ready",
    ],
    [
      "grafana.com/rollout-force-replicas",
      "annotation",
      "On a follower: these replicas at once, whatever the leader has. On a mirroring zone: instead of the reference's, after the delay. A forced zone waits for no other zone",
    ],
    [
      "grafana.com/rollout-mirror-replicas-from-resource-name",
      "annotation",
      "The resource whose replicas the zone takes over: any kind with a scale subresource, such as a ReplicaTemplate that an autoscaler owns",
    ],
    ["grafana.com/rollout-mirror-replicas-from-resource-kind", "annotation", "Its kind"],
    [
      "grafana.com/rollout-mirror-replicas-from-resource-api-version",
      "annotation",
      "Its API group (the version is not used); the core group if absent",
    ],
    [
      "grafana.com/rollout-mirror-replicas-from-resource-write-back",
      "annotation",
      "`false`: the zone's replicas are not written to the resource's status. They never are for workloads (group `apps`)",
    ],
    [
      "grafana.com/rollout-delayed-downscale",
      "annotation",
      "A Prometheus duration such as `1d`: how long pods of a mirroring zone are prepared before they go",
    ],
    [
      "grafana.com/rollout-prepare-delayed-downscale-url",
      "annotation",
      "Where a pod is prepared: `POST` when it is to go, `DELETE` when it stays. The pod's DNS name replaces the host",
    ],
  ],
  "On PhasedRollouts and their StatefulSets": [
    [
      "sts.plus/phasedRollout",
      "annotation on the StatefulSet",
      "Written by the reconciler: the PhasedRollout that manages the partition. Remove it to write the partition by hand",
    ],
    [
      "sts.plus/original-partition",
      "annotation on the StatefulSet",
      "Written by the reconciler: the partition before that, which returns when the PhasedRollout is deleted",
    ],
    ["sts.plus/pause", "annotation", "`true`: no pod is released by checks"],
    ["sts.plus/promote-step", "annotation", "`<updateRevision>/<partition>`: this one step needs no checks"],
    [
      "sts.plus/finalizer",
      "finalizer",
      "Written by the reconciler: it gives the StatefulSet back before the object goes",
    ],
  ],
  "On RolloutGates, pods and Evictions": [
    [
      "zonewise.dev/retry-gate",
      "annotation on a RolloutGate",
      "The gate's `status.identity`, or that and a suffix of your own (`/2`): a failed gate asks again, once for each value",
    ],
    [
      "controller-revision-hash",
      "label on a pod",
      "Written by Kubernetes. The pod is outdated if it differs from the StatefulSet's update revision",
    ],
    [
      "zonewise/delete-by-hand",
      "annotation on a pod",
      "`true`: this pod may be deleted, whatever [guards deletions](../guides/budgets.md#guard-deletions-too)",
    ],
    [
      "zonewise/probe",
      "annotation on an Eviction",
      "Only tests whether the eviction webhook answers: it refuses with 400 whatever the budget says. `doctor`, `explain` and `drain-order` send it with `dryRun`",
    ],
  ],
  "On a Node": [
    ["bottlerocket.aws/updater-interface-version", "label", "Exactly `2.0.0`, set by users: the node is managed"],
    [
      "node.kubernetes.io/exclude-from-external-load-balancers",
      "label",
      "`True` while the node is drained, if the agents exclude it from load balancers",
    ],
    [
      "zonewise.dev/cordoned-by",
      "annotation",
      "Written by the node API: the cordon is ours, for the shadow of this UID",
    ],
    ["zonewise.dev/excluded-by", "annotation", "Written by the node API: so is the exclusion from load balancers"],
    [
      "zonewise.dev/protected-by",
      "annotation",
      "Written by the reconciler: the annotations that keep autoscalers away from an active node",
    ],
  ],
  "On a webhook configuration": [
    ["grafana.com/namespace", "label", "The installation that the configuration belongs to"],
    [
      "grafana.com/inject-rollout-operator-ca",
      "label",
      "`true`: Zonewise maintains its `caBundle`, unless an annotation names [another injector](../operate/certificates.md#webhook-configurations)",
    ],
  ],
  "On Leases and on what a drill makes (do not edit)": [
    ["zonewise/successor", "annotation", "`zonewise-reconciler`: the run that waits for the Lease"],
    ["zonewise/totals", "annotation", "`zonewise-reconciler`: the reconciler's counters that belong to no group"],
    [
      "zonewise/node-update-policy-seen",
      "annotation",
      "`zonewise-reconciler`: there was a NodeUpdatePolicy, so `default` is not made again",
    ],
    [
      "zonewise/downscale",
      "label",
      "`zonewise-downscale-…`: `pending` while an admitted downscale may not be stored yet",
    ],
    ["zonewise/pending-downscales", "annotation", "`zonewise-downscale-…`: these downscales"],
    ["statefulset", "annotation", "`zonewise-downscale-…`: the zone that last held the Lease"],
    [
      "zonewise/disrupted-pods",
      "annotation",
      "`zonewise-budget-…`: reservations of a budget whose definition has no `status.disruptedPods`",
    ],
    [
      "zonewise/drill",
      "label",
      "The run of [`npm run drill`](../operate/drill.md) that made the object and removes it",
    ],
    ["zonewise/drill-expires", "annotation", "When that run counts as dead, and its objects may be removed"],
    ["zonewise/drill-template", "annotation", "Changed to roll the drill's zones out"],
  ],
};
