/** Objects and changes that programs are made of: for each kind some that are valid, and some that are not. */
import type { Draw } from "../../../simulation/draw.ts";
import type { Fields } from "../../../emulator/objects.ts";

/** A kind whose objects programs write. */
export interface Subject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  /** Everything but apiVersion, kind and metadata of a new object; mostly valid. */
  readonly fields: (draw: Draw, name: string) => Fields;
  /** Merge patches, valid or not. */
  readonly changes: readonly ((draw: Draw) => Fields)[];
  /** Merge patches of the status; without them there is no status. */
  readonly statuses?: readonly ((draw: Draw) => Fields)[];
  readonly hasScale?: true;
  readonly custom?: true;
}

const count = (draw: Draw): number => draw.between(0, 4);
const SELECTOR = { matchLabels: { app: "z" } };
const HOLD = "example.com/hold";

const configMaps: Subject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  fields: (draw) => ({
    data: draw.chance(0.1) ? { "a b": "1" } : { k: String(count(draw)) },
    ...(draw.chance(0.1) && { immutable: true }),
  }),
  changes: [
    (draw) => ({ data: { k: String(count(draw)) } }),
    (draw) => ({ data: { [draw.of(["l", "m"])]: String(count(draw)) } }),
    () => ({ data: { k: null } }),
    () => ({ data: null }),
    () => ({ immutable: true }),
    () => ({ immutable: null }),
    () => ({ data: { "a b": "1" } }),
    () => ({ binaryData: { b: "AAEC" } }),
    () => ({ binaryData: { k: "AAEC" } }),
  ],
};

const secrets: Subject = {
  apiVersion: "v1",
  kind: "Secret",
  plural: "secrets",
  fields: (draw) => ({
    ...draw.of([
      { data: { k: "YQ==" } },
      { stringData: { k: "text" } },
      { data: { k: "YQ==" }, stringData: { k: "b" } },
      {},
    ]),
    ...(draw.chance(0.5) && { type: draw.of(["Opaque", "example.com/x"]) }),
    ...(draw.chance(0.1) && { immutable: true }),
  }),
  changes: [
    () => ({ data: { k: "Yg==" } }),
    () => ({ stringData: { l: "text" } }),
    () => ({ data: { k: null } }),
    () => ({ type: "example.com/other" }),
    () => ({ immutable: true }),
    () => ({ data: { "a/b": "YQ==" } }),
  ],
};

const leases: Subject = {
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  plural: "leases",
  fields: (draw) => ({
    spec: {
      holderIdentity: draw.of(["a", "b"]),
      leaseDurationSeconds: draw.of([15, 15, 15, 0, -1]),
      renewTime: "2026-01-01T00:00:00.000000Z",
    },
  }),
  changes: [
    (draw) => ({ spec: { holderIdentity: draw.of(["a", "b", ""]) } }),
    () => ({ spec: { holderIdentity: null } }),
    (draw) => ({ spec: { renewTime: `2026-01-01T00:00:0${count(draw)}.000000Z` } }),
    (draw) => ({ spec: { leaseTransitions: draw.between(-1, 3) } }),
    (draw) => ({ spec: { leaseDurationSeconds: draw.of([30, 0, -1, null]) } }),
  ],
};

const revisions: Subject = {
  apiVersion: "apps/v1",
  kind: "ControllerRevision",
  plural: "controllerrevisions",
  fields: (draw) => ({ data: { a: count(draw) }, revision: draw.between(-1, 3) }),
  changes: [(draw) => ({ revision: draw.between(-1, 3) }), (draw) => ({ data: { a: count(draw) } })],
};

const events: Subject = {
  apiVersion: "v1",
  kind: "Event",
  plural: "events",
  fields: (draw) => ({
    involvedObject: { kind: "ConfigMap", name: "a", namespace: draw.chance(0.1) ? "elsewhere" : "@namespace" },
    reason: draw.of(["Noted", "Seen"]),
    message: "all is well",
    type: draw.of(["Normal", "Warning"]),
    count: 1,
    source: { component: "programs" },
    firstTimestamp: "2026-01-01T00:00:00Z",
    lastTimestamp: "2026-01-01T00:00:00Z",
  }),
  changes: [
    (draw) => ({ count: draw.between(1, 9) }),
    (draw) => ({ message: `again ${count(draw)}` }),
    () => ({ involvedObject: { namespace: "elsewhere" } }),
  ],
};

const budgets: Subject = {
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  plural: "poddisruptionbudgets",
  fields: (draw) => ({
    spec: {
      ...draw.of([
        { maxUnavailable: 1 },
        { maxUnavailable: 0 },
        { maxUnavailable: "50%" },
        { minAvailable: 1 },
        { minAvailable: "60%" },
        { minAvailable: 1, maxUnavailable: 1 },
        { maxUnavailable: "150%" },
        { minAvailable: -1 },
        {},
      ]),
      ...(draw.chance(0.9) && { selector: draw.chance(0.9) ? SELECTOR : {} }),
      ...(draw.chance(0.3) && { unhealthyPodEvictionPolicy: draw.of(["AlwaysAllow", "IfHealthyBudget", "Never"]) }),
    },
  }),
  changes: [
    (draw) => ({ spec: { maxUnavailable: draw.between(0, 2), minAvailable: null } }),
    (draw) => ({ spec: { minAvailable: draw.of([0, 1, "50%"]), maxUnavailable: null } }),
    () => ({ spec: { minAvailable: 1 } }),
    () => ({ spec: { selector: { matchLabels: { app: "other" } } } }),
    () => ({ spec: { unhealthyPodEvictionPolicy: "AlwaysAllow" } }),
    () => ({ spec: { maxUnavailable: "x" } }),
  ],
};

/** The simulated kubelets are fast, so that a program settles soon. */
const SIMULATED = { "sim/ready-after-ms": "10", "sim/exit-after-ms": "10", "sim/node": "node-1" };

function podFields(draw: Draw): Fields {
  return {
    spec: {
      containers: [{ name: "main", image: draw.of(["app:1", "app:2"]) }],
      ...(draw.chance(0.3) && { terminationGracePeriodSeconds: draw.of([0, 5, 60]) }),
      ...(draw.chance(0.1) && { readinessGates: [{ conditionType: "example.com/open" }] }),
      ...(draw.chance(0.1) && { restartPolicy: draw.of(["Never", "OnFailure"]) }),
    },
  };
}

const ready = (status: string): Fields => ({ type: "Ready", status, lastTransitionTime: "2026-01-01T00:00:00Z" });

const pods: Subject = {
  apiVersion: "v1",
  kind: "Pod",
  plural: "pods",
  fields: podFields,
  changes: [
    () => ({ metadata: { annotations: { "sim/ready": "false" } } }),
    () => ({ metadata: { annotations: { "sim/ready": null } } }),
    () => ({ metadata: { annotations: { "sim/crash": "true" } } }),
    () => ({ metadata: { annotations: { "sim/crash": null } } }),
    () => ({ metadata: { labels: { app: "other" } } }),
    () => ({ metadata: { labels: { app: "z" } } }),
    () => ({ metadata: { ownerReferences: null } }),
    () => ({ spec: { terminationGracePeriodSeconds: 1 } }),
    () => ({ spec: { hostname: "other" } }),
    () => ({ spec: { nodeName: "node-2" } }),
    () => ({ spec: { activeDeadlineSeconds: 3600 } }),
  ],
  statuses: [
    () => ({ phase: "Failed" }),
    () => ({ phase: "Succeeded" }),
    () => ({ conditions: [ready("True")] }),
    () => ({ conditions: [ready("False")] }),
    () => ({ reason: "Evicted", message: "told so" }),
    () => ({ phase: "Running", conditions: [ready("True")] }),
  ],
};

const template = (draw: Draw): Fields => ({
  metadata: {
    labels: { app: draw.chance(0.05) ? "other" : "z", ...(draw.chance(0.3) && { track: draw.of(["a", "b"]) }) },
    annotations: { ...SIMULATED, ...(draw.chance(0.15) && { "sim/ready": "false" }) },
  },
  spec: {
    containers: [{ name: "main", image: draw.of(["app:1", "app:2", "app:3"]) }],
    ...(draw.chance(0.2) && { terminationGracePeriodSeconds: draw.of([0, 5, 60]) }),
  },
});

const strategy = (draw: Draw): Fields =>
  draw.of<Fields>([
    { type: "OnDelete" },
    { type: "OnDelete" },
    { type: "OnDelete" },
    { type: "RollingUpdate" },
    { type: "RollingUpdate" },
    { type: "RollingUpdate", rollingUpdate: { partition: draw.between(0, 3) } },
    { type: "RollingUpdate", rollingUpdate: { partition: draw.between(0, 3) } },
    { type: "RollingUpdate", rollingUpdate: { partition: draw.between(0, 3) } },
    { type: "RollingUpdate", rollingUpdate: { partition: -1 } },
    { type: "Recreate" },
    { type: "OnDelete", rollingUpdate: { partition: 0 } },
  ]);

const sets: Subject = {
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  plural: "statefulsets",
  hasScale: true,
  fields: (draw, name) => ({
    spec: {
      ...(draw.chance(0.9) && { replicas: draw.between(0, 4) }),
      serviceName: name,
      selector: SELECTOR,
      template: template(draw),
      ...(draw.chance(0.7) && { podManagementPolicy: draw.of(["Parallel", "OrderedReady", "OrderedReady"]) }),
      ...(draw.chance(0.7) && { updateStrategy: strategy(draw) }),
      ...(draw.chance(0.2) && { ordinals: { start: draw.between(0, 3) } }),
      ...(draw.chance(0.1) && { revisionHistoryLimit: draw.between(0, 2) }),
    },
  }),
  changes: [
    (draw) => ({ spec: { replicas: draw.between(-1, 5) } }),
    (draw) => ({ spec: { replicas: draw.between(0, 5) } }),
    (draw) => ({
      spec: { template: { spec: { containers: [{ name: "main", image: draw.of(["app:1", "app:2", "app:3"]) }] } } },
    }),
    (draw) => ({
      spec: { template: { spec: { containers: [{ name: "main", image: draw.of(["app:4", "app:5"]) }] } } },
    }),
    (draw) => ({ spec: { template: { metadata: { labels: { track: draw.of(["a", "b", null]) } } } } }),
    () => ({ spec: { template: { metadata: { annotations: { "sim/ready": "false" } } } } }),
    () => ({ spec: { template: { metadata: { annotations: { "sim/ready": null } } } } }),
    (draw) => ({ spec: { updateStrategy: strategy(draw) } }),
    (draw) => ({
      spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: draw.between(0, 3) } } },
    }),
    (draw) => ({ spec: { ordinals: draw.chance(0.3) ? null : { start: draw.between(0, 3) } } }),
    () => ({ spec: { serviceName: "other" } }),
    () => ({ spec: { podManagementPolicy: "Parallel" } }),
    () => ({ spec: { selector: { matchLabels: { app: "other" } } } }),
    () => ({ spec: { template: { metadata: { labels: { app: "other" } } } } }),
    () => ({ metadata: { labels: { app: "z" } } }),
  ],
  statuses: [
    (draw) => ({ replicas: count(draw) }),
    (draw) => ({ readyReplicas: count(draw), replicas: 4 }),
    () => ({ replicas: -1 }),
    () => ({ observedGeneration: 1 }),
  ],
};

const RESERVED = { kind: "eviction", uid: "u", pinned: true, time: "2026-01-01T00:00:00Z", by: "me" };

const zoneBudgets: Subject = {
  apiVersion: "rollout-operator.grafana.com/v1",
  kind: "ZoneAwarePodDisruptionBudget",
  plural: "zoneawarepoddisruptionbudgets",
  custom: true,
  fields: (draw) =>
    draw.chance(0.05)
      ? {}
      : {
          spec: {
            ...(draw.chance(0.9) && { selector: draw.chance(0.9) ? SELECTOR : {} }),
            ...(draw.chance(0.3) ? zoneBudgetLimit(draw) : { maxUnavailable: 1 }),
            ...(draw.chance(0.2) && zoneBudgetPartition(draw)),
          },
        },
  changes: [
    (draw) => ({ spec: zoneBudgetLimit(draw) }),
    (draw) => ({ spec: zoneBudgetPartition(draw) }),
    (draw) => ({ spec: { maxUnavailable: count(draw), maxUnavailablePercentage: null } }),
    () => ({ spec: { selector: { matchLabels: { "a b": "c" } } } }),
    () => ({ spec: { selector: { matchLabels: { "example.com/a": "c", "x/y/z": "d" } } } }),
    () => ({ spec: { selector: { matchLabels: { app: "a b" } } } }),
    () => ({ spec: { unknown: 1 } }),
    () => ({ spec: null }),
  ],
  statuses: [
    () => ({ disruptedPods: { "z-0": { ...RESERVED, more: 1 } } }),
    () => ({ disruptedPods: { "z/1": { ...RESERVED, kind: "downscale", from: 2 } } }),
    () => ({ disruptedPods: { "z-0": null } }),
    () => ({ disruptedPods: { "z-1": { uid: "u" } } }),
    () => ({ disruptedPods: { "z-1": { ...RESERVED, kind: "drain" } } }),
    () => ({ disruptedPods: { "z-1": { ...RESERVED, pinned: "no" } } }),
    () => ({ disruptedPods: { "z-1": { ...RESERVED, time: "now" } } }),
    (draw) => ({ observedGeneration: count(draw) }),
    () => ({ zones: [{ name: "a", expected: 1, healthy: "x" }] }),
    () => ({ conditions: [{ type: "Protecting", status: "True" }] }),
    () => ({ conditions: [{ type: "Protecting" }] }),
  ],
};

function zoneBudgetLimit(draw: Draw): Fields {
  return draw.of<Fields>([
    { maxUnavailable: count(draw) },
    { maxUnavailable: -1 },
    { maxUnavailable: "1" },
    { maxUnavailable: 1.5 },
    { maxUnavailablePercentage: draw.of([0, 10, 100, 101, -1]) },
    { maxUnavailable: 1, maxUnavailablePercentage: 10 },
  ]);
}

function zoneBudgetPartition(draw: Draw): Fields {
  return draw.of<Fields>([
    { podNamePartitionRegex: "[a-z-]+-([0-9]+)" },
    { podNamePartitionRegex: "[a-z-]+-([0-9]+)", podNameRegexGroup: draw.between(0, 2) },
    { podNamePartitionRegex: "" },
    { podNamePartitionRegex: "[a-z]+" },
    { podNamePartitionRegex: "((" },
    { podNamePartitionRegex: null, crossZoneEvictionDelay: "1m" },
    { crossZoneEvictionDelay: draw.of(["1m30s", "0", "", "-1s", "soon", "1.5h"]) },
    { podNamePartitionRegex: "(a)", crossZoneEvictionDelay: draw.of(["1m30s", "-1s"]) },
  ]);
}

const URLS = [
  "http://prometheus:9090",
  "prometheus",
  "ftp://prometheus",
  "http://",
  "http://a b",
  "https://user@host/x",
];

const urlOf = (draw: Draw): string => (draw.chance(0.25) ? draw.of(URLS) : "http://prometheus:9090");

const phased: Subject = {
  apiVersion: "sts.plus/v1alpha1",
  kind: "PhasedRollout",
  plural: "phasedrollouts",
  custom: true,
  fields: (draw) => ({
    spec: {
      ...(draw.chance(0.95) && { targetRef: draw.of(["a", "b", "b", ""]) }),
      check: {
        query: { expr: "up", url: urlOf(draw) },
        ...(draw.chance(0.3) && { periodSeconds: draw.between(-1, 9) }),
      },
      ...(draw.chance(0.15) && { skipCheck: true, standardRollingUpdate: draw.chance(0.5) }),
    },
  }),
  changes: [
    (draw) => ({ spec: { targetRef: draw.of(["a", "b"]) } }),
    () => ({ spec: { targetRef: null } }),
    (draw) => ({ spec: { check: { query: { url: draw.of(URLS) } } } }),
    (draw) => ({ spec: { check: { query: { successWhen: draw.of(["NoData", "Never"]) } } } }),
    (draw) => ({ spec: { skipCheck: draw.chance(0.5), standardRollingUpdate: draw.chance(0.5) } }),
    (draw) => ({ spec: { progressDeadlineSeconds: draw.of([0, 1, 2_147_483_648]) } }),
    () => ({ spec: { check: { failureThreshold: 2 } } }),
    (draw) => ({ spec: { onDelete: draw.of(["release", "freeze", "x"]) } }),
  ],
  statuses: [() => ({ phase: "Stalled" }), () => ({ phase: null }), () => ({ unknown: 1 }), () => ({ phase: 1 })],
};

const templates: Subject = {
  apiVersion: "rollout-operator.grafana.com/v1",
  kind: "ReplicaTemplate",
  plural: "replicatemplates",
  custom: true,
  hasScale: true,
  fields: (draw) => ({
    spec: {
      ...(draw.chance(0.7) && { replicas: draw.chance(0.1) ? -1 : count(draw) }),
      ...(draw.chance(0.5) && { labelSelector: "app=z" }),
    },
  }),
  changes: [
    (draw) => ({ spec: { replicas: draw.between(-1, 4) } }),
    () => ({ spec: { replicas: null } }),
    () => ({ spec: { labelSelector: 1 } }),
    () => ({ spec: null }),
  ],
  statuses: [(draw) => ({ replicas: count(draw) }), () => ({ replicas: "x" }), () => ({ replicas: null })],
};

const gates: Subject = {
  apiVersion: "zonewise.dev/v1",
  kind: "RolloutGate",
  plural: "rolloutgates",
  custom: true,
  fields: (draw) => ({
    spec: {
      group: "g",
      checks: draw.of<readonly Fields[]>([
        [gateCheck(draw, "a")],
        [gateCheck(draw, "a")],
        [gateCheck(draw, "a")],
        [gateCheck(draw, "a"), gateCheck(draw, "b")],
        [gateCheck(draw, "a"), gateCheck(draw, "b")],
        [gateCheck(draw, "a"), gateCheck(draw, "a")],
        [],
        [gateCheck(draw, "A")],
      ]),
      ...(draw.chance(0.2) && {
        when: draw.of([["BeforeFirstZone"], ["BetweenZones", "BetweenZones"], ["Never"], []]),
      }),
    },
  }),
  changes: [
    (draw) => ({ spec: { checks: [gateCheck(draw, "a")] } }),
    (draw) => ({ spec: { when: draw.of([["AfterLastZone"], null, ["BetweenZones", "BetweenZones"]]) } }),
    (draw) => ({ spec: { mode: draw.of(["Observe", "Enforce", "Ignore", null]) } }),
    () => ({ spec: { group: "" } }),
  ],
};

function gateCheck(draw: Draw, name: string): Fields {
  return { name, query: { expr: "up", url: urlOf(draw) }, successWhen: draw.of(["NoData", "Data", "Data"]) };
}

/** What a program is about: it writes these kinds alone, and all clusters watch them. */
export const THEMES: Readonly<Record<string, readonly Subject[]>> = {
  objects: [configMaps, secrets, leases],
  records: [configMaps, revisions, events],
  custom: [zoneBudgets, phased, templates, gates],
  pods: [pods, budgets, configMaps],
  sets: [sets, sets, pods, budgets],
};

/** Metadata of a new object: labels, finalizers and an owner at times, and at times what cannot be. */
export function metadataFor(draw: Draw, name: string, owner: Subject): Fields {
  const isPrefix = name.endsWith("-");
  return {
    ...(isPrefix ? { generateName: name } : { name: draw.chance(0.03) ? "Not_A_Name" : name }),
    ...(draw.chance(0.6) && {
      labels: { app: draw.of(["z", "z", "other"]), ...(draw.chance(0.05) && { "a b": "c" }) },
    }),
    annotations: { ...SIMULATED, ...(draw.chance(0.15) && { "sim/ready": "false" }) },
    ...(draw.chance(0.12) && { finalizers: draw.of([[HOLD], [HOLD, "example.com/other"], ["unqualified"]]) }),
    ...(draw.chance(0.12) && { ownerReferences: [ownerReference(draw, owner)] }),
    ...(draw.chance(0.02) && { namespace: "elsewhere" }),
    ...(draw.chance(0.02) && { resourceVersion: "1" }),
    ...(draw.chance(0.03) && { uid: "11111111-2222-3333-4444-555555555555", generation: 7 }),
  };
}

export function ownerReference(draw: Draw, { apiVersion, kind, plural }: Subject): Fields {
  const name = draw.of(["a", "b"]);
  return {
    apiVersion,
    kind,
    name,
    uid: draw.chance(0.9) ? `@uid ${plural}/${name}` : "",
    ...(draw.chance(0.3) && { controller: true }),
    ...(draw.chance(0.5) && { blockOwnerDeletion: true }),
  };
}

/** Merge patches of any object's metadata. */
export const METADATA_CHANGES: readonly ((draw: Draw) => Fields)[] = [
  (draw) => ({ labels: { l: draw.of(["1", "2", null]) } }),
  (draw) => ({ annotations: { n: draw.of(["1", "2", null]) } }),
  () => ({ finalizers: [HOLD] }),
  () => ({ finalizers: null }),
  () => ({ finalizers: null }),
  () => ({ finalizers: ["example.com/late"] }),
  () => ({ labels: { l: "a b" } }),
  () => ({ labels: { l: 1 } }),
  () => ({ labels: null }),
  () => ({ name: "renamed" }),
  () => ({ uid: "11111111-2222-3333-4444-555555555555" }),
  () => ({ generation: 99 }),
  () => ({ creationTimestamp: "2020-01-01T00:00:00Z" }),
  () => ({ deletionTimestamp: "2020-01-01T00:00:00Z" }),
  () => ({ namespace: "elsewhere" }),
];
