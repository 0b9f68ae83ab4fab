/** The kinds of objects that Zonewise reads or writes, with their JSON shapes. */
import type {
  CoreV1Event,
  V1ConfigMap,
  V1ControllerRevision,
  V1CustomResourceDefinition,
  V1Job,
  V1Lease,
  V1MutatingWebhookConfiguration,
  V1Node,
  V1ObjectMeta,
  V1Pod,
  V1PodCondition,
  V1PodDisruptionBudget,
  V1PodStatus,
  V1Scale,
  V1Secret,
  V1StatefulSet,
  V1TokenReview,
  V1ValidatingWebhookConfiguration,
} from "@kubernetes/client-node";
import { createPodListDecoder, type Decoder } from "./protobuf.ts";

/** A client-node type as plain JSON: its Dates are RFC 3339 strings. */
export type Json<T> = T extends Date
  ? string
  : T extends readonly (infer E)[]
    ? Json<E>[]
    : T extends object
      ? { [K in keyof T]: Json<T[K]> }
      : T;

export interface ListBody<T> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly T[] | null;
}

/** The API resource of a kind; `T` is the shape of its objects. */
export interface Resource<T = unknown> {
  /** API group, "" for core. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** For lists in protobuf: parsing long lists of large objects as JSON takes several times as long. */
  readonly createListDecoder?: () => Decoder<ListBody<T>>;
  /** A list requests the metadata only, for large objects of which nothing else is read. */
  readonly metadataOnly?: true;
  /** Carries the type only; never set. */
  readonly shape?: T;
}

/** The resource of an API version, such as `apps/v1` or `v1`. */
export function resourceOf<T>(apiVersion: string, plural: string): Resource<T> {
  const [version = "", group = ""] = apiVersion.split("/").toReversed();
  return { group, version, plural };
}

export type StatefulSet = Json<V1StatefulSet>;
/** The fields of a pod that are read; lists of pods have no others (protobuf.ts), and not its spec. */
export interface PodObject {
  readonly metadata?: Pick<
    ObjectMeta,
    | "name"
    | "namespace"
    | "uid"
    | "resourceVersion"
    | "creationTimestamp"
    | "deletionTimestamp"
    | "labels"
    | "annotations"
    | "ownerReferences"
  >;
  readonly spec?: { readonly nodeName?: string };
  readonly status?: PodStatus;
}
export interface PodStatus extends Pick<Json<V1PodStatus>, "phase" | "startTime"> {
  readonly conditions?: readonly Pick<Json<V1PodCondition>, "type" | "status" | "lastTransitionTime" | "reason">[];
  readonly containerStatuses?: readonly ContainerStatus[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
}

interface ContainerStatus {
  readonly ready: boolean;
  readonly restartCount?: number;
  readonly image?: string;
  readonly state?: {
    readonly waiting?: { readonly reason?: string };
    readonly running?: { readonly startedAt?: string };
  };
}

export type Lease = Json<V1Lease>;
export type Node = Json<V1Node>;
export type ConfigMap = Json<V1ConfigMap>;
/** The fields that are read. */
export interface Definition {
  readonly metadata?: ObjectMeta;
  readonly spec?: Pick<Json<V1CustomResourceDefinition>["spec"], "conversion">;
}
export type Scale = Json<V1Scale>;
export type Event = Json<CoreV1Event>;
export type ControllerRevision = Json<V1ControllerRevision>;
export type Secret = Json<V1Secret>;
type TokenReview = Json<V1TokenReview>;
export type WebhookConfiguration = Json<V1ValidatingWebhookConfiguration | V1MutatingWebhookConfiguration>;

export const statefulSets: Resource<StatefulSet> = resourceOf("apps/v1", "statefulsets");
export const statefulSetNames: Resource<Pick<StatefulSet, "metadata">> = { ...statefulSets, metadataOnly: true };
/** The fields of a Deployment that are read. */
type Deployment = Pick<StatefulSet, "metadata"> & {
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: { readonly spec?: { readonly containers?: readonly { readonly image?: string }[] } };
  };
};
export const deployments: Resource<Deployment> = resourceOf("apps/v1", "deployments");
export const replicaSets: Resource<Pick<StatefulSet, "metadata">> = resourceOf("apps/v1", "replicasets");
export const pods: Resource<PodObject> = { ...resourceOf("v1", "pods"), createListDecoder: createPodListDecoder };
export const leases: Resource<Lease> = resourceOf("coordination.k8s.io/v1", "leases");
export const secrets: Resource<Secret> = resourceOf("v1", "secrets");
export const validatingWebhooks: Resource<WebhookConfiguration> = resourceOf(
  "admissionregistration.k8s.io/v1",
  "validatingwebhookconfigurations",
);
export const mutatingWebhooks: Resource<WebhookConfiguration> = resourceOf(
  "admissionregistration.k8s.io/v1",
  "mutatingwebhookconfigurations",
);
export const configMaps: Resource<ConfigMap> = resourceOf("v1", "configmaps");
export const definitions: Resource<Definition> = resourceOf("apiextensions.k8s.io/v1", "customresourcedefinitions");
export const events: Resource<Event> = resourceOf("v1", "events");
export const controllerRevisions: Resource<ControllerRevision> = resourceOf("apps/v1", "controllerrevisions");
/** Only created: the answer is its status. */
export const tokenReviews: Resource<TokenReview> = resourceOf("authentication.k8s.io/v1", "tokenreviews");

/** Created as the subresource `eviction` of a pod. */
interface Eviction {
  readonly apiVersion: "policy/v1";
  readonly kind: "Eviction";
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly deleteOptions?: { readonly preconditions: { readonly uid: string }; readonly dryRun?: readonly ["All"] };
}
export const evictions: Resource<Eviction> = resourceOf("v1", "pods");

/** The fields of a CronJob that are read: of its run, and of the variables of its container. */
export interface CronJob {
  readonly metadata?: ObjectMeta;
  readonly spec?: {
    readonly suspend?: boolean;
    readonly jobTemplate?: {
      readonly spec?: { readonly template?: { readonly spec?: { readonly containers?: readonly RunContainer[] } } };
    };
  };
  readonly status?: { readonly lastScheduleTime?: string };
}

export interface RunContainer {
  readonly image?: string;
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly configMapKeyRef?: { readonly name?: string; readonly key: string } };
  }[];
  readonly envFrom?: readonly { readonly configMapRef?: { readonly name?: string } }[];
}
export const cronJobs: Resource<CronJob> = resourceOf("batch/v1", "cronjobs");

export type Job = Json<V1Job>;
export const jobs: Resource<Job> = resourceOf("batch/v1", "jobs");
/** The pods of the reconciler's Jobs, with the reasons why they wait or have failed, which `pods` leaves out. */
export type RunPod = Pick<Json<V1Pod>, "metadata" | "status">;
export const runPods: Resource<RunPod> = resourceOf("v1", "pods");

export type ObjectMeta = Json<V1ObjectMeta>;

/** A controller of pods, with the fields that count its ready pods. */
export interface Controller {
  readonly metadata?: ObjectMeta;
  readonly spec?: { readonly replicas?: number };
  readonly status?: {
    readonly readyReplicas?: number;
    readonly numberReady?: number;
    readonly desiredNumberScheduled?: number;
  };
}
export const daemonSets: Resource<Controller> = resourceOf("apps/v1", "daemonsets");
export type PodDisruptionBudget = Json<V1PodDisruptionBudget>;
export const podDisruptionBudgets: Resource<PodDisruptionBudget> = resourceOf("policy/v1", "poddisruptionbudgets");

export const nodes: Resource<Node> = resourceOf("v1", "nodes");

export const namespaces: Resource<{ readonly metadata?: ObjectMeta }> = resourceOf("v1", "namespaces");
