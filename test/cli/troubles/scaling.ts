/** Zones that are to be scaled, and the annotations by which they are. */
import { DELAYED, MIRROR } from "../../reconciler/scaling/mirror-stage.ts";
import { put, timestamp } from "../../emulator/objects.ts";
import { annotate, create, label, setSpec } from "./changes.ts";
import { SETS, type Installation } from "./installation.ts";
import type { Trouble } from "./trouble.ts";

const [A, B] = ["ingester-zone-a", "ingester-zone-b"] as const;
const LEADER = "grafana.com/rollout-downscale-leader";

/** Zone b mirrors a ReplicaTemplate that wants `replicas`. */
function mirror(at: Installation, replicas: number, annotations: Readonly<Record<string, string>> = {}): void {
  create(at, "replicatemplates.rollout-operator.grafana.com", "ReplicaTemplate", {
    metadata: { name: "template" },
    spec: { replicas },
  });
  annotate(at, SETS, B, { ...MIRROR, ...annotations });
}

export const SCALING_TROUBLES: readonly Trouble[] = [
  {
    trouble: "a leader that is not in the group",
    make: (at) => annotate(at, SETS, B, { [LEADER]: "ingester-zone-x" }),
    says: { status: /LeaderNotFound/, explain: /scale: Blocked {2}LeaderNotFound/, page: /LeaderNotFound/ },
    event: /^LeaderNotFound /m,
    cure: {},
  },
  {
    trouble: "zones that follow each other",
    make: (at) => {
      annotate(at, SETS, A, { [LEADER]: B });
      annotate(at, SETS, B, { [LEADER]: A });
    },
    says: { status: /LeaderCycle/, explain: /scale: Blocked {2}LeaderCycle/ },
    event: /^LeaderCycle /m,
    cure: {},
  },
  {
    trouble: "a zone with a leader and a resource to mirror",
    make: (at) => mirror(at, 2, { [LEADER]: A }),
    says: { status: /LeaderAndMirror/, explain: /scale: Blocked {2}LeaderAndMirror/ },
    event: /^LeaderAndMirror /m,
    cure: {},
  },
  {
    trouble: "a leader that is not ready, and a follower that waits for it",
    make: (at) => {
      annotate(at, SETS, B, { [LEADER]: A, "grafana.com/rollout-upscale-only-when-leader-ready": "true" });
      setSpec(at, SETS, A, ["replicas"], 3);
      for (const node of ["node-1", "node-2", "node-3"]) setSpec(at, "nodes", node, ["unschedulable"], true);
    },
    seenAfter: 45,
    says: { explain: /scale: Waiting {2}LeaderNotReady/ },
    cure: { takes: /annotate/ },
    changes: [B],
  },
  {
    trouble: "a follower without a minimum time, where another zone has one",
    make: (at) => {
      annotate(at, SETS, A, {
        "grafana.com/min-time-between-zones-downscale": "1s",
        "grafana.com/last-downscale": timestamp(at.stage.clock.now()),
      });
      annotate(at, SETS, B, { [LEADER]: A });
      setSpec(at, SETS, A, ["replicas"], 1);
    },
    says: { status: /MinTimeUnknown/, explain: /scale: Blocked {2}MinTimeUnknown/ },
    cure: {
      edit: (set) => put(set, ["metadata", "annotations", "grafana.com/min-time-between-zones-downscale"], "1s"),
    },
    changes: [B],
  },
  {
    trouble: "the minimum time between zones",
    make: (at) => {
      const labels = { "grafana.com/min-time-between-zones-downscale": "12h" };
      for (const zone of [A, B]) label(at, SETS, zone, labels);
      annotate(at, SETS, B, { [LEADER]: A });
      annotate(at, SETS, A, { "grafana.com/last-downscale": timestamp(at.stage.clock.now()) });
      setSpec(at, SETS, A, ["replicas"], 1);
    },
    says: { explain: /scale: Waiting {2}MinTimeBetweenZones/, status: /MinTimeBetweenZones/ },
    event: /^MinTimeBetweenZones /m,
    cure: { takes: /annotate/ },
    changes: [B],
  },
  {
    trouble: "a pod that refuses to prepare for a downscale",
    make: (at) => {
      at.hosts = () => ({ status: 500, body: "" });
      mirror(at, 1, DELAYED);
    },
    says: {
      status: /PrepareFailed/,
      explain: /scale: Blocked {2}PrepareFailed\n.*ingester-zone-b-1.*500/,
      page: /PrepareFailed/,
    },
    event: /^PrepareFailed .*ingester-zone-b-1/m,
    cure: {
      text: /find out why the pod that the message names refuses:\n +kubectl -n default logs ingester-zone-b-1/,
      does: (at) => {
        at.hosts = () => ({
          status: 200,
          body: JSON.stringify({ timestamp: Math.floor(at.stage.clock.now() / 1000) - 7200 }),
        });
      },
    },
    changes: [B],
  },
  {
    trouble: "a delayed downscale that waits for its time",
    make: (at) => {
      const since = Math.floor(at.stage.clock.now() / 1000);
      at.hosts = () => ({ status: 200, body: JSON.stringify({ timestamp: since }) });
      mirror(at, 1, DELAYED);
    },
    says: { status: /DelayNotReached/, explain: /scale: Waiting {2}DelayNotReached/ },
    event: /^DelayNotReached /m,
    cure: {
      edit: (set) => put(set, ["metadata", "annotations", "grafana.com/rollout-delayed-downscale"], "1s"),
    },
    changes: [B],
  },
  {
    trouble: "a resource to mirror that does not exist",
    make: (at) => annotate(at, SETS, B, MIRROR),
    says: { status: /ReferenceUnreadable/, explain: /scale: Blocked {2}ReferenceUnreadable/ },
    event: /^ReferenceUnreadable /m,
    cure: {
      edit: (set) => ({ ...set, metadata: { ...set.metadata, annotations: {} } }),
    },
  },
  {
    trouble: "an annotation that cannot be read",
    make: (at) => annotate(at, SETS, B, { "rollout-max-unavailable": "many" }),
    says: { doctor: /statefulset\/ingester-zone-b: .*rollout-max-unavailable.*\(unreadable\)/ },
    event: /^InvalidAnnotation .*rollout-max-unavailable/m,
    cure: {
      by: "doctor",
      edit: (set) => put(set, ["metadata", "annotations", "rollout-max-unavailable"], "1"),
    },
  },
  {
    trouble: "a label where an annotation is read",
    make: (at) => label(at, SETS, B, { "rollout-max-unavailable": "1" }),
    says: {
      doctor:
        /statefulset\/ingester-zone-b: its label rollout-max-unavailable has no effect; did you mean the annotation/,
    },
    cure: { by: "doctor", edit: (set) => put(set, ["metadata", "labels", "rollout-max-unavailable"], undefined) },
  },
  {
    trouble: "an annotation rollout-group beside the label, which alone is read",
    make: (at) => annotate(at, SETS, B, { "rollout-group": "other" }),
    says: {
      doctor: /ingester-zone-b: its annotation rollout-group has no effect; did you mean the label rollout-group\?/,
    },
    cure: { by: "doctor", edit: (set) => put(set, ["metadata", "annotations", "rollout-group"], undefined) },
  },
];
