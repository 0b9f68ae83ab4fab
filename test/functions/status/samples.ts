/** Builders of what the status page shows. */
import type { LivePod, LiveZone, PageGroup, PageRecords } from "../../../functions/status/view/records.ts";
import type { StoredHold, RolloutGroupStatus, ZoneRow } from "../../../reconciler/group-status/status.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { zone as zoneWithPods } from "../../builders/groups.ts";

export const NOW = Date.parse("2026-11-22T03:00:00Z");

export const group = (name: string, status: Partial<RolloutGroupStatus> = {}): PageGroup => ({
  namespace: "default",
  name,
  status,
});

export const stored = (traits: Partial<StoredHold> = {}): StoredHold => ({
  reason: "OtherZoneNotReady",
  phase: "RollingOut",
  message: "zone-b waits for zone-a",
  cause: "OtherZoneNotReady: zone-a",
  objects: [
    { kind: "StatefulSet", name: "zone-b" },
    { kind: "StatefulSet", name: "zone-a" },
    { kind: "Pod", name: "zone-a-1" },
  ],
  since: "2026-11-22T02:55:00Z",
  ...traits,
});

export const zone = (name: string, traits: Partial<ZoneRow> = {}): ZoneRow => ({
  name,
  currentRevision: `${name}-1111111111`,
  updateRevision: `${name}-2222222222`,
  replicas: 3,
  pods: 3,
  updated: 1,
  ready: 2,
  paused: false,
  generation: 1,
  observedGeneration: 1,
  ...traits,
});

/** A zone as it is, with its pods. */
export const live = (name: string, pods: readonly LivePod[], images: readonly string[] = []): LiveZone => ({
  ...zoneWithPods({ name, updateRevision: `${name}-2222222222` }),
  pods,
  images,
});

interface PodTraits {
  readonly isReady?: boolean;
  readonly isTerminating?: boolean;
  readonly images?: readonly string[];
}

export const pod = (
  name: string,
  revision: string,
  { isReady = true, isTerminating = false, images = [] }: PodTraits = {},
): LivePod => ({
  ...readPod({
    metadata: {
      name,
      namespace: "default",
      labels: { "controller-revision-hash": revision },
      ...(isTerminating && { deletionTimestamp: "2026-11-22T02:59:00Z" }),
    },
    status: { phase: "Running", containerStatuses: [{ ready: isReady, state: { running: {} } }] },
  }),
  images,
});

export const records = (traits: Partial<PageRecords> = {}): PageRecords => ({
  readAt: NOW,
  reconciler: {},
  groups: [],
  unread: [],
  zones: new Map(),
  problems: [],
  budgets: [],
  decisions: [],
  ...traits,
});
