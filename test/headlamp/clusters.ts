/** Clusters to look at: what a reconciler has recorded in them, written as it is stored. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { Draft } from "../emulator/objects.ts";
import { type Emulator, startEmulator } from "../emulator/index.ts";
import { writeLease } from "../cli/stage.ts";
import { block, zone } from "../functions/status/samples.ts";
import { ROOT } from "../infra/manifests.ts";

const DEFINITIONS = [
  "crds/rolloutgroups",
  "crds/rolloutgates",
  "crds/phasedrollouts",
  "crds/zoneawarepoddisruptionbudgets",
  "node-updates/crds/nodeupdatepolicies",
];

const MINUTE_MS = 60_000;
const ago = (minutes: number): string => new Date(Date.now() - minutes * MINUTE_MS).toISOString().slice(0, 19) + "Z";

/** A character that turns the text after it round. */
export const HOSTILE = "\u202E";

/** Nothing of Zonewise is in it, and no definition. */
export const startEmpty = (): Promise<Emulator> => startEmulator({ controllers: false });

/** `tickedMs`: how long ago the last tick was. */
export async function startCluster({ tickedMs = 2000 } = {}): Promise<Emulator> {
  const emulator = await startEmpty();
  const { store } = emulator;
  for (const file of DEFINITIONS)
    store.create(
      "customresourcedefinitions.apiextensions.k8s.io",
      parse(readFileSync(join(ROOT, `infra/manifests/${file}.yaml`), "utf8")) as Draft,
    );
  tick(emulator, tickedMs);
  for (const [resource, objects] of Object.entries(OBJECTS()))
    for (const object of objects) store.create(resource, object);
  return emulator;
}

/** The reconciler's last tick was so long ago. */
export function tick(emulator: Emulator, tickedMs = 2000): void {
  writeLease({ emulator, clock: { now: Date.now } }, { tickedMs, renewedMs: tickedMs, holder: "zonewise-1" });
}

const named = (apiVersion: string, kind: string, name: string, rest: object): Draft => ({
  apiVersion,
  kind,
  metadata: { name, namespace: "default", generation: 1 },
  ...rest,
});

const condition = (type: string, status: string, reason: string, message: string) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: ago(5),
  observedGeneration: 1,
});

const OBJECTS = (): Readonly<Record<string, readonly Draft[]>> => ({
  "rolloutgroups.zonewise.dev": [
    named("zonewise.dev/v1", "RolloutGroup", "store", {
      status: {
        group: "store",
        phase: "Waiting",
        message: `store-zone-b waits${HOSTILE}`,
        blocked: [block({ since: ago(5), message: "store-zone-b waits for store-zone-a" })],
        zones: [zone("store-zone-a"), zone("store-zone-b", { updated: 0 })],
        plan: [{ action: "ReplacePods", zone: "store-zone-b", count: 3, atOnce: 1, pods: ["store-zone-b-0"] }],
      },
    }),
    named("zonewise.dev/v1", "RolloutGroup", "quiet", {
      status: {
        group: "quiet",
        phase: "Ready",
        summary: { zones: "3/3", updated: "9/9", ready: "9/9" },
        zones: [zone("quiet-zone-a")],
      },
    }),
  ],
  "statefulsets.apps": [setOf("store-zone-a", { "rollout-group": "store" }), setOf("db", {})],
  pods: [podOf("store-zone-a-0", true), podOf("store-zone-a-1", false)],
  "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com": [
    named("rollout-operator.grafana.com/v1", "ZoneAwarePodDisruptionBudget", "store", {
      spec: { maxUnavailable: 1, selector: { matchLabels: { "rollout-group": "store" } } },
      status: {
        zones: [{ name: "store-zone-a", healthy: 1, expected: 2, disruptionsAllowed: 0 }],
        conditions: [condition("Protecting", "True", "Protecting", "evictions are judged")],
      },
    }),
  ],
  "rolloutgates.zonewise.dev": [
    named("zonewise.dev/v1", "RolloutGate", "errors", {
      spec: { group: "store", checks: [{ name: "rate", prometheus: "http://p", query: "up" }] },
      status: {
        observedGeneration: 1,
        identity: "1",
        startTime: ago(9),
        zones: [],
        stages: [{ point: "BetweenZones", zone: "store-zone-b", since: ago(7), state: "Failed", checks: [] }],
        conditions: [condition("Open", "False", "GateFailed", "before store-zone-b: rate failed 3 times")],
      },
    }),
  ],
  "phasedrollouts.sts.plus": [
    named("sts.plus/v1alpha1", "PhasedRollout", "guard", {
      spec: { targetRef: "db", check: { query: { expr: "up", url: "http://p" } } },
      status: {
        observedGeneration: 1,
        targetUID: "uid-of-db",
        targetObservedGeneration: 1,
        phase: "ErrorCannotManage",
        conditions: [condition("Ready", "False", "ErrorCannotManage", "another PhasedRollout manages db")],
      },
    }),
  ],
  "nodeupdatepolicies.zonewise.dev": [
    {
      apiVersion: "zonewise.dev/v1",
      kind: "NodeUpdatePolicy",
      metadata: { name: "all", generation: 1 },
      spec: {},
      status: {
        nodes: { total: 9, upToDate: 4, waiting: 4, active: 1, failed: 0 },
        active: [
          {
            node: "node-7",
            nodeUid: "n",
            shadowUid: "s",
            from: "1",
            to: "2",
            bootId: "",
            startedAt: ago(3),
            phase: "Draining",
            since: ago(2),
            waitsFor: "a budget",
          },
        ],
        skipped: { OutsideWindow: 4 },
        message: "the window is closed",
      },
    },
  ],
});

function setOf(name: string, labels: Readonly<Record<string, string>>): Draft {
  const matchLabels = { name };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name, namespace: "default", labels, uid: `uid-of-${name}`, generation: 1 },
    spec: {
      replicas: 2,
      serviceName: name,
      selector: { matchLabels },
      updateStrategy: { type: "OnDelete" },
      template: { metadata: { labels: matchLabels }, spec: { containers: [{ name: "c", image: "nginx:1.29" }] } },
    },
    status: { replicas: 2, readyReplicas: 1, observedGeneration: 1, updateRevision: `${name}-2222222222` },
  };
}

function podOf(name: string, isReady: boolean): Draft {
  const owner = name.replace(/-\d+$/, "");
  const waiting = { waiting: { reason: "CrashLoopBackOff" } };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: "default",
      labels: { name: owner, "controller-revision-hash": `${owner}-2222222222` },
      ownerReferences: [
        { apiVersion: "apps/v1", kind: "StatefulSet", name: owner, uid: `uid-of-${owner}`, controller: true },
      ],
    },
    spec: { containers: [{ name: "c", image: "nginx:1.29" }] },
    status: {
      phase: "Running",
      conditions: [{ type: "Ready", status: isReady ? "True" : "False", lastTransitionTime: ago(5) }],
      containerStatuses: [{ name: "c", ready: isReady, restartCount: 0, state: isReady ? { running: {} } : waiting }],
    },
  };
}
