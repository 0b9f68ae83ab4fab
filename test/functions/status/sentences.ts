/** What the status page says, by what was read. */
import { type PageRecords, UNREAD } from "../../../functions/status/view/records.ts";
import { stored, group, live, NOW, pod, zone } from "./samples.ts";

/** A group that waits. */
export const store = group("store", {
  phase: "Waiting",
  message: "zone-b waits for zone-a",
  holds: [stored({ nextCheck: "2026-11-22T03:01:00Z" })],
  zones: [
    zone("zone-a", { paused: true, lastDownscale: "2026-11-22T01:00:00Z" }),
    zone("zone-b", { currentRevision: "zone-b-2222222222" }),
  ],
  plan: [
    { action: "ReplacePods", zone: "zone-a", count: 12, atOnce: 2, pods: ["zone-a-0", "zone-a-1"] },
    { action: "FinishZone", zone: "zone-a" },
  ],
  progress: {
    stepsLeft: 13,
    startTime: "2026-11-22T02:00:00Z",
    lastStepTime: "2026-11-22T02:50:00Z",
    estimatedCompletionTime: "2026-11-22T04:00:00Z",
  },
});

export const NO_TICK = {
  lastTick: "2026-11-22T02:54:59Z",
  noTick: {
    state: "stopped",
    reason: "Suspended",
    message:
      "the reconciler has not run since 2026-11-22T02:54:59Z (5m1s ago): CronJob default/zonewise-reconciler is suspended",
    since: "2026-11-22T02:54:59Z",
    remedy: "kubectl patch it",
  },
} as const;

export const OLD =
  "CronJob default/zonewise-reconciler is suspended. Nothing is rolled out or scaled, and groups are shown as last recorded. Fix kubectl patch it";

export const NOT_YET = {
  noTick: {
    state: "unknown",
    reason: "NotYet",
    message: "the reconciler has not run yet: CronJob default/zonewise-reconciler was created 50s ago",
    remedy: "kubectl get it",
  },
} as const;

/** What the page says of what was read. */
export const SENTENCES: readonly (readonly [what: string, traits: Partial<PageRecords>, expected: string])[] = [
  [
    "how many groups are in each phase",
    { groups: [store, group("a", { phase: "Ready" }), group("b", { phase: "Ready" })] },
    "1 Waiting, 2 Ready",
  ],
  [
    "why a group waits, since when and until when",
    { groups: [store] },
    "OtherZoneNotReady since 02:55:00 UTC (5 min ago) , until 03:01:00 UTC (in 1 min) zone-b waits for zone-a StatefulSet zone-b, StatefulSet zone-a, Pod zone-a-1 Fix make all pods of zone-a ready: kubectl -n default get pods or look: kubectl -n default describe pod zone-a-1",
  ],
  [
    "until when a zone may begin without its gates, also of a group that is done",
    {
      groups: [
        group("c", {
          phase: "Ready",
          zones: [zone("zone-a", { gatesBypassedUntil: "2026-11-22T04:00:00Z", gatesBypassReason: "known alert" })],
        }),
      ],
    },
    "gates bypassed until 2026-11-22T04:00:00Z (known alert)",
  ],
  [
    "until when the window of a zone is closed",
    { groups: [group("c", { zones: [zone("zone-a", { rolloutWindow: { cron: "* * 4 * * *" } })] })] },
    "zone-a window closed until 2026-11-22T04:00:00Z",
  ],
  [
    "that a window does not open by itself",
    { groups: [group("c", { zones: [zone("zone-a", { rolloutWindow: { cron: "at night" } })] })] },
    "zone-a window closed until its annotation is corrected",
  ],
  [
    "the state of a zone",
    { groups: [store] },
    "zone-a paused, last downscale 2026-11-22T01:00:00Z 11111 → 22222 1/3 2/3 3 pods",
  ],
  ["one revision of a zone that has but one", { groups: [store] }, "zone-b 22222 1/3"],
  [
    "the progress clock",
    { groups: [store] },
    "13 steps left, began 02:00:00 UTC (1 h ago) , last step 02:50:00 UTC (10 min ago)",
  ],
  [
    "the plan",
    { groups: [store] },
    "Plan replace 12 pods of zone-a, 2 at a time: zone-a-0, zone-a-1 and 10 more record zone-a as updated",
  ],
  [
    "the images of a zone, and each pod with its revision and state",
    {
      groups: [store],
      zones: new Map([
        [
          "default/store",
          [
            live(
              "zone-a",
              [
                pod("zone-a-0", "zone-a-2222222222"),
                pod("zone-a-1", "zone-a-1111111111", { isReady: false }),
                pod("zone-a-2", "zone-a-1111111111", { isTerminating: true }),
              ],
              ["nginx:1.29", "sidecar:2"],
            ),
          ],
        ],
      ]),
    },
    "11111 → 22222 nginx:1.29, sidecar:2 1/3 2/3 ● 0 22222 ready ○ 1 11111 not ready ✕ 2 11111 terminating",
  ],
  [
    "when the last rollout of a group ended",
    {
      groups: [
        group("a", {
          phase: "Ready",
          summary: { zones: "3/3", updated: "9/9", ready: "9/9" },
          progress: { stepsLeft: 0, startTime: "", lastStepTime: "", completionTime: "2026-11-20T03:00:00Z" },
        }),
      ],
    },
    "default/a Ready 3/3 9/9 9/9 2026-11-20 03:00:00 UTC (2 d ago)",
  ],
  [
    "the zones of a budget, its reservations and by whom",
    {
      budgets: [
        {
          namespace: "default",
          name: "store",
          protection: {
            zones: [
              { name: "zone-a", expected: 3, healthy: 2 },
              { name: "zone-b", expected: 3, healthy: 3 },
            ],
            conditions: [
              {
                type: "Protecting",
                status: "True",
                reason: "Protecting",
                message: "it selects 2 zones",
                observedGeneration: 1,
                lastTransitionTime: "",
              },
            ],
          },
          reservations: {
            "zone-a-1": { kind: "eviction", uid: "u", pinned: true, time: "2026-11-22T02:59:30Z", by: "functions-x" },
            "zone-b/1": {
              kind: "downscale",
              uid: "b",
              from: 2,
              pinned: true,
              time: "2026-11-22T02:59:30Z",
              by: "reconciler-x",
            },
          },
        },
      ],
    },
    "default/store True it selects 2 zones zone-a: 2 of 3 zone-b: 3 of 3 zone-a-1: eviction by functions-x 02:59:30 UTC (30 s ago) zone-b/1: downscale, pods from ordinal 2 on by reconciler-x 02:59:30 UTC (30 s ago)",
  ],
  [
    "the last decisions",
    {
      decisions: [
        {
          namespace: "default",
          object: "StatefulSet default/zone-a",
          type: "Warning",
          reason: "ZoneNotReady",
          message: "zone-a-1 is not ready",
          count: 3,
          time: "2026-11-22T02:59:59Z",
        },
      ],
    },
    "02:59:59 UTC (1 s ago) StatefulSet default/zone-a ZoneNotReady (warning) zone-a-1 is not ready 3",
  ],
  [
    "the age of the tick and the certificate",
    {
      reconciler: { lastTick: "2026-11-22T02:59:56Z", holder: "zonewise-1", certificateExpiry: NOW + 86_400_000 * 30 },
    },
    "Last tick 02:59:56 UTC (4 s ago) Reconciler zonewise-1 Certificate expires 2026-12-22 03:00:00 UTC (in 30 d)",
  ],
  [
    "that no tick is recorded",
    {},
    "Last tick not recorded Reconciler not running now Certificate expires not recorded",
  ],
  ["that the reconciler's Lease could not be read", { reconciler: UNREAD }, "Reconciler could not be read Warning:"],
  ["that groups could not be read", { groups: UNREAD }, "Groups Could not be read. Disruption budgets"],
  [
    "that budgets and decisions could not be read",
    { budgets: UNREAD, decisions: UNREAD },
    "Disruption budgets Could not be read. Last decisions Could not be read.",
  ],
  ["what could not be read", { problems: ["pods could not be read"] }, "pods could not be read"],
  ["that there is no group", {}, "No rollout groups."],
  [
    "that the definition is missing",
    { groups: undefined },
    "The cluster knows no RolloutGroup: install the definitions",
  ],
  [
    "that there is neither a budget nor a decision",
    { budgets: undefined },
    "Disruption budgets There is none. Last decisions None is recorded.",
  ],
];
