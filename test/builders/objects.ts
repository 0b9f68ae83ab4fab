/** Objects as a user creates them and as the API server stores them: a test names only what matters to it. */
import type { Draft, KubeObject } from "../emulator/objects.ts";
import type { Store } from "../emulator/store.ts";

export interface Traits {
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** What is beside these in the metadata. */
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

const API_VERSIONS = {
  BottlerocketShadow: "brupop.bottlerocket.aws/v2",
  ConfigMap: "v1",
  CronJob: "batch/v1",
  CustomResourceDefinition: "apiextensions.k8s.io/v1",
  DaemonSet: "apps/v1",
  Deployment: "apps/v1",
  Event: "v1",
  Job: "batch/v1",
  Lease: "coordination.k8s.io/v1",
  Namespace: "v1",
  Node: "v1",
  NodeUpdatePolicy: "zonewise.dev/v1",
  PhasedRollout: "sts.plus/v1alpha1",
  Pod: "v1",
  PodDisruptionBudget: "policy/v1",
  ReplicaTemplate: "rollout-operator.grafana.com/v1",
  RolloutGate: "zonewise.dev/v1",
  RolloutGroup: "zonewise.dev/v1",
  Secret: "v1",
  Service: "v1",
  ServiceAccount: "v1",
  StatefulSet: "apps/v1",
  ZoneAwarePodDisruptionBudget: "rollout-operator.grafana.com/v1",
} as const;
export type Kind = keyof typeof API_VERSIONS;

const CLUSTER_SCOPED: ReadonlySet<string> = new Set([
  "CustomResourceDefinition",
  "Namespace",
  "Node",
  "NodeUpdatePolicy",
]);

type Made<T> = Draft & Omit<T, "namespace" | "labels" | "annotations" | "metadata">;

/** Any object of a namespace, `default` unless the traits name another, or of the cluster. */
export function make<T extends Traits & Readonly<Record<string, unknown>>>(
  kind: Kind,
  name: string,
  traits: T = {} as T,
): Made<T> {
  const { namespace = "default", labels, annotations, metadata, ...fields }: Traits = traits;
  const place = CLUSTER_SCOPED.has(kind) ? {} : { namespace };
  const whole = { name, ...place, ...(labels && { labels }), ...(annotations && { annotations }), ...metadata };
  return { ...fields, apiVersion: API_VERSIONS[kind], kind, metadata: whole } as Made<T>;
}

function resourceOf(kind: Kind): string {
  const plural = kind === "NodeUpdatePolicy" ? "nodeupdatepolicies" : `${kind.toLowerCase()}s`;
  const [, group] = API_VERSIONS[kind].split("/").toReversed();
  return group === undefined ? plural : `${plural}.${group}`;
}

/** Stores such an object; returns it as it is stored. */
export function add(
  store: Pick<Store, "create">,
  kind: Kind,
  name: string,
  traits?: Traits & Readonly<Record<string, unknown>>,
): KubeObject {
  return store.create(resourceOf(kind), make(kind, name, traits));
}

/** Removes such an object. */
export function drop(store: Pick<Store, "remove">, kind: Kind, name: string, namespace = "default"): void {
  store.remove(resourceOf(kind), CLUSTER_SCOPED.has(kind) ? undefined : namespace, name);
}

/** Changes a stored object as a user does: what the traits name, beside what there is. */
export function amend(
  store: Pick<Store, "get" | "update">,
  kind: Kind,
  name: string,
  { namespace = "default", labels, annotations, metadata, spec, status }: Traits,
): void {
  const found = store.get(resourceOf(kind), CLUSTER_SCOPED.has(kind) ? undefined : namespace, name);
  if (!found) throw new Error(`there is no ${kind} ${name}`);
  const { metadata: own } = found;
  store.update(resourceOf(kind), {
    ...found,
    metadata: {
      ...own,
      ...(labels && { labels: { ...own.labels, ...labels } }),
      ...(annotations && { annotations: { ...own.annotations, ...annotations } }),
      ...metadata,
    },
    ...(spec && { spec: { ...(found["spec"] as object), ...spec } }),
    ...(status && { status: { ...(found["status"] as object), ...status } }),
  });
}

interface PodTraits extends Traits {
  /** The StatefulSet that controls it. */
  readonly owner?: { readonly name: string; readonly uid: string };
}

const CONTAINERS = [{ name: "main", image: "app:1" }];

/** A pod of one container, Pending unless its status says otherwise. */
export function pod(name: string, { owner, metadata, spec, status, ...traits }: PodTraits = {}): Draft {
  const ownerReferences = owner && [{ apiVersion: "apps/v1", kind: "StatefulSet", ...owner, controller: true }];
  return make("Pod", name, {
    ...traits,
    metadata: { ...metadata, ...(ownerReferences && { ownerReferences }) },
    spec: { containers: CONTAINERS, ...spec },
    status: status ?? { phase: "Pending" },
  });
}

/** A StatefulSet as Zonewise rolls it out, OnDelete and Parallel, whose pods have its name as their label `name`. */
export function statefulSet(name: string, replicas: number, { spec, ...traits }: Traits = {}): Draft {
  return make("StatefulSet", name, {
    ...traits,
    spec: {
      replicas,
      serviceName: name,
      selector: { matchLabels: { name } },
      podManagementPolicy: "Parallel",
      updateStrategy: { type: "OnDelete" },
      template: { metadata: { labels: { name } }, spec: { containers: CONTAINERS } },
      ...spec,
    },
  });
}

/** The object as the API server returns it. */
export function stored(object: Draft, uid = object.metadata.name ?? ""): KubeObject {
  const { name = "", ...metadata } = object.metadata;
  return {
    ...object,
    metadata: { name, uid, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z", ...metadata },
  };
}
