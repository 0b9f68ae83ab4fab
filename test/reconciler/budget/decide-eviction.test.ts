import { PARTITIONS } from "./builders.ts";
import { judgeEach, ZONES_MET, type EvictionCase } from "./table.ts";

const FAILED = { phase: "Failed", broken: "Failed" };
/** Its main container works. */
const LIMPING = { broken: "CrashLoopBackOff", working: true };
/** It was ready until 2026-01-01T01:00:00Z. */
const RECOVERING = { ready: false, restarts: 0 };
const NOT_LONG = Date.parse("2026-01-01T01:04:59Z");
const UNREADY = { ready: false };
const met = (partition: string): string => `zpdb met for partition ${partition} across 3 zones`;

const CASES: readonly EvictionCase[] = [
  // The original answers the first two with 403, which makes drainers give up.
  ["maxUnavailable 0 is a no for now", { pod: "zone-a-0", spec: { maxUnavailable: 0 } }, 429, "max unavailable = 0"],
  ["the rollout's own limit replaces 0", { pod: "zone-a-0", spec: { maxUnavailable: 0 }, rollout: 1 }, 200, ZONES_MET],
  [
    "in partition mode 1 replaces 0",
    { pod: "zone-a-0", spec: { maxUnavailable: 0, ...PARTITIONS }, rollout: 3 },
    200,
    met("0"),
  ],
  [
    "in partition mode 1 replaces 0, regardless of the rollout's limit",
    { pod: "zone-a-0", spec: { maxUnavailable: 0, ...PARTITIONS }, rollout: 3, zones: { b: { pods: { 0: UNREADY } } } },
    429,
    "1 pod not ready in partition 0",
  ],
  ["percentage 0", { pod: "zone-a-0", spec: { maxUnavailablePercentage: 0 } }, 429, "max unavailable = 0"],
  [
    "percentage of a zone that has no pods yet",
    { pod: "zone-a-0", spec: { maxUnavailablePercentage: 50 }, zones: { a: { statusReplicas: 0 } } },
    429,
    "max unavailable = 0",
  ],
  [
    "percentage of the pod's own zone",
    { pod: "zone-a-0", spec: { maxUnavailablePercentage: 67 }, zones: { a: { pods: { 1: UNREADY } } } },
    200,
    ZONES_MET,
  ],
  [
    "a partition whose peer was scaled away",
    { pod: "zone-b-2", spec: PARTITIONS, zones: { a: { replicas: 2 } } },
    429,
    "1 pod unknown in partition 2",
  ],
  [
    "a partition of whose peer is left what never served",
    { pod: "zone-b-2", spec: PARTITIONS, zones: { a: { replicas: 2, pods: { 2: UNREADY } } } },
    429,
    "1 pod unknown in partition 2",
  ],
  [
    "a peer that failed and one that was scaled away, max 2",
    {
      pod: "zone-c-2",
      spec: { maxUnavailable: 2, ...PARTITIONS },
      zones: { a: { replicas: 1 }, b: { pods: { 2: FAILED } } },
    },
    429,
    "1 pod not ready, 1 pod unknown in partition 2",
  ],
  [
    "the pod's own zone has one reserved",
    { pod: "zone-a-2", reserved: ["zone-a-0"] },
    429,
    "1 pod not ready in ingester-zone-a",
  ],
  ["its own reservation does not block it", { pod: "zone-a-0", reserved: ["zone-a-0"] }, 200, ZONES_MET],
  ["all pods ready", { pod: "zone-a-0" }, 200, ZONES_MET],
  [
    "a failure in the zone, max 1",
    { pod: "zone-a-0", zones: { a: { pods: { 1: FAILED } } } },
    429,
    "1 pod not ready in ingester-zone-a",
  ],
  [
    "a failure in the zone, max 2",
    { pod: "zone-a-0", spec: { maxUnavailable: 2 }, zones: { a: { pods: { 1: FAILED } } } },
    200,
    ZONES_MET,
  ],
  [
    "a failure in another zone, max 1",
    { pod: "zone-a-0", zones: { c: { pods: { 1: FAILED } } } },
    429,
    "1 pod not ready in ingester-zone-c",
  ],
  [
    "a failure in another zone, max 2",
    { pod: "zone-a-0", spec: { maxUnavailable: 2 }, zones: { c: { pods: { 1: UNREADY } } } },
    429,
    "1 pod not ready in ingester-zone-c",
  ],
  [
    "the status counts a pod that does not exist",
    { pod: "zone-a-0", zones: { b: { statusReplicas: 4 } } },
    429,
    "1 pod unknown in ingester-zone-b",
  ],
  [
    "missing pods and terminating pods",
    { pod: "zone-a-0", zones: { b: { pods: { 0: null, 1: { terminating: true }, 2: null } } } },
    429,
    "1 pod not ready, 2 pods unknown in ingester-zone-b",
  ],
  [
    "the rollout's limit is ignored when one is configured",
    { pod: "zone-a-0", spec: { maxUnavailable: 1 }, rollout: 1 },
    200,
    ZONES_MET,
  ],
  [
    "a reservation in another zone",
    { pod: "zone-b-0", reserved: ["zone-a-0"], rollout: 2 },
    429,
    "1 pod not ready in ingester-zone-a (ready, but allowed to go: ingester-zone-a-0)",
  ],
  [
    "a reservation of a pod that is gone from the ready ones is not named",
    { pod: "zone-b-0", reserved: ["zone-a-0"], rollout: 2, zones: { a: { pods: { 0: UNREADY } } } },
    429,
    "1 pod not ready in ingester-zone-a",
  ],
  [
    "a pod beyond the replicas of its zone stands in for none that is missing",
    { pod: "zone-a-0", zones: { b: { pods: { 0: null, 3: {} } } } },
    429,
    "1 pod to be removed, 1 pod unknown in ingester-zone-b",
  ],
  [
    "nor does one below the first ordinal",
    { pod: "zone-a-0", zones: { b: { start: 1 } } },
    429,
    "1 pod to be removed, 1 pod unknown in ingester-zone-b",
  ],
  ["partition: all pods ready", { pod: "zone-a-0", spec: PARTITIONS }, 200, met("0")],
  [
    "partition: the own zone does not count",
    { pod: "zone-a-0", spec: PARTITIONS, zones: { a: { pods: { 1: FAILED } } } },
    200,
    met("0"),
  ],
  [
    "partition: another partition does not count",
    { pod: "zone-a-0", spec: PARTITIONS, zones: { c: { pods: { 2: FAILED } } } },
    200,
    met("0"),
  ],
  [
    "partition: a peer that failed",
    { pod: "zone-a-0", spec: PARTITIONS, zones: { b: { pods: { 0: FAILED } } } },
    429,
    "1 pod not ready in partition 0",
  ],
  [
    "partition: a peer that is reserved",
    { pod: "zone-a-0", spec: PARTITIONS, reserved: ["zone-b-0", "zone-c-1"] },
    429,
    "1 pod not ready in partition 0",
  ],
  [
    "partition: a missing pod counts in every partition",
    { pod: "zone-a-0", spec: PARTITIONS, zones: { b: { statusReplicas: 4 } } },
    429,
    "1 pod unknown in partition 0",
  ],
  [
    "partition by the second group",
    {
      pod: "zone-a-0",
      spec: { podNamePartitionRegex: "ingester(-foo)?-zone-[a-z]-([0-9]+)", podNameRegexGroup: 2 },
      zones: { b: { statusReplicas: 4 } },
    },
    429,
    "1 pod unknown in partition 0",
  ],
  [
    "one peer failed, max 2",
    { pod: "zone-a-0", spec: { maxUnavailable: 2, ...PARTITIONS }, zones: { b: { pods: { 0: FAILED } } } },
    200,
    met("0"),
  ],
  [
    "two peers failed, max 2",
    {
      pod: "zone-a-0",
      spec: { maxUnavailable: 2, ...PARTITIONS },
      zones: { b: { pods: { 0: FAILED } }, c: { pods: { 0: UNREADY } } },
    },
    429,
    "2 pods not ready in partition 0",
  ],
  [
    "a name without a partition",
    { pod: "zone-a-0", spec: { podNamePartitionRegex: "(x)" } },
    400,
    "failed to extract partition from pod Name regular expression",
  ],
  [
    "the rollout replaces an unavailable pod: the unavailable pods of its own zone do not block it",
    {
      pod: "zone-a-0",
      rollout: 1,
      zones: { a: { pods: { 0: { broken: "CrashLoopBackOff" }, 1: { broken: "CrashLoopBackOff" } } } },
    },
    200,
    ZONES_MET,
  ],
  [
    "they do block an eviction of the same pod",
    {
      pod: "zone-a-0",
      zones: { a: { pods: { 0: { broken: "CrashLoopBackOff" }, 1: { broken: "CrashLoopBackOff" } } } },
    },
    429,
    "1 pod not ready in ingester-zone-a",
  ],
  [
    "nor do those of other zones: it serves nothing",
    {
      pod: "zone-a-0",
      rollout: 1,
      zones: { a: { pods: { 0: { broken: "CrashLoopBackOff" } } }, b: { pods: { 0: UNREADY } } },
    },
    200,
    ZONES_MET,
  ],
  [
    "a pod that was never ready serves nothing, either",
    { pod: "zone-a-0", rollout: 1, zones: { a: { pods: { 0: UNREADY } }, b: { pods: { 0: UNREADY } } } },
    200,
    ZONES_MET,
  ],
  [
    "in partitions as well",
    {
      pod: "zone-a-0",
      rollout: 1,
      spec: PARTITIONS,
      zones: { a: { pods: { 0: UNREADY } }, b: { pods: { 0: UNREADY } } },
    },
    200,
    "zpdb met for partition 0 across 3 zones",
  ],
  [
    "unavailable pods of another zone block the rollout for a pod of which one container works",
    { pod: "zone-a-0", rollout: 1, zones: { a: { pods: { 0: LIMPING } }, b: { pods: { 0: UNREADY } } } },
    429,
    "1 pod not ready in ingester-zone-b",
  ],
  [
    "and for a pod that was ready until lately",
    {
      pod: "zone-a-0",
      rollout: 1,
      now: NOT_LONG,
      zones: { a: { pods: { 0: RECOVERING } }, b: { pods: { 0: UNREADY } } },
    },
    429,
    "1 pod not ready in ingester-zone-b",
  ],
  [
    "not once it has had its time to recover",
    { pod: "zone-a-0", rollout: 1, zones: { a: { pods: { 0: RECOVERING } }, b: { pods: { 0: UNREADY } } } },
    200,
    ZONES_MET,
  ],
  [
    "a pod that works in part goes though others of its zone wait for the same cure",
    { pod: "zone-a-0", rollout: 3, zones: { a: { at: "prev", pods: { 0: LIMPING, 1: LIMPING, 2: LIMPING } } } },
    200,
    ZONES_MET,
  ],
  [
    "it waits for such a pod of another group under the budget",
    {
      pod: "zone-a-0",
      rollout: 1,
      zones: {
        a: { at: "prev", pods: { 0: LIMPING } },
        d: { name: "store-zone-a", group: "store", at: "prev", pods: { 0: LIMPING } },
      },
    },
    429,
    "1 pod not ready in store-zone-a",
  ],
  [
    "but not while another one of them is on its way",
    {
      pod: "zone-a-1",
      rollout: 3,
      zones: { a: { at: "prev", pods: { 0: LIMPING, 1: LIMPING, 2: LIMPING } } },
      reserved: ["zone-a-0"],
    },
    429,
    "1 pod not ready in ingester-zone-a",
  ],
  [
    "or has its replacement, which is not ready",
    {
      pod: "zone-a-1",
      rollout: 3,
      zones: { a: { at: "prev", pods: { 0: { ...LIMPING, revision: "last" }, 1: LIMPING, 2: LIMPING } } },
    },
    429,
    "1 pod not ready in ingester-zone-a",
  ],
  [
    "nor is one that is ready spared less for it",
    { pod: "zone-a-1", rollout: 3, zones: { a: { at: "prev", pods: { 0: LIMPING } } } },
    429,
    "1 pod not ready in ingester-zone-a",
  ],
  [
    "a pod beyond its zone's replicas that never served counts for nobody",
    { pod: "zone-a-0", zones: { b: { statusReplicas: 3, pods: { 3: UNREADY } } } },
    200,
    ZONES_MET,
  ],
  [
    "one that serves or has served does",
    { pod: "zone-a-0", zones: { b: { statusReplicas: 3, pods: { 3: RECOVERING } } } },
    429,
    "1 pod not ready in ingester-zone-b",
  ],
  [
    "all blocking zones are named, the pod's own last",
    {
      pod: "zone-a-0",
      zones: { a: { pods: { 1: UNREADY } }, b: { statusReplicas: 4 }, c: { pods: { 0: UNREADY, 2: UNREADY } } },
    },
    429,
    "1 pod unknown in ingester-zone-b; 2 pods not ready in ingester-zone-c; 1 pod not ready in ingester-zone-a",
  ],
];

judgeEach("the eviction of a pod", CASES);
