/** Objects and reviews as the API server stores and sends them: a test names only what matters to it. */
import type { AdmissionRequest } from "../functions/http/webhook.ts";
import type { Draft, KubeObject } from "./emulator/objects.ts";

interface Traits {
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** What is beside these in the metadata. */
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

interface PodTraits extends Traits {
  /** The StatefulSet that controls it. */
  readonly owner?: { readonly name: string; readonly uid: string };
}

const CONTAINERS = [{ name: "main", image: "app:1" }];

function metadataOf(name: string, { namespace = "default", labels, annotations, metadata }: Traits): Draft["metadata"] {
  return { name, namespace, ...(labels && { labels }), ...(annotations && { annotations }), ...metadata };
}

/** A pod of one container, Pending unless its status says otherwise. */
export function pod(name: string, { owner, spec, status = { phase: "Pending" }, ...traits }: PodTraits = {}): Draft {
  const ownerReferences = owner && [{ apiVersion: "apps/v1", kind: "StatefulSet", ...owner, controller: true }];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...metadataOf(name, traits), ...(ownerReferences && { ownerReferences }) },
    spec: { containers: CONTAINERS, ...spec },
    status,
  };
}

/** A StatefulSet as Zonewise rolls it out, OnDelete and Parallel, whose pods have its name as their label `name`. */
export function statefulSet(name: string, replicas: number, { spec, status, ...traits }: Traits = {}): Draft {
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: metadataOf(name, traits),
    spec: {
      replicas,
      serviceName: name,
      selector: { matchLabels: { name } },
      podManagementPolicy: "Parallel",
      updateStrategy: { type: "OnDelete" },
      template: { metadata: { labels: { name } }, spec: { containers: CONTAINERS } },
      ...spec,
    },
    ...(status && { status }),
  };
}

/** The object as the API server returns it. */
export function stored(object: Draft, uid = object.metadata.name ?? ""): KubeObject {
  const { name = "", ...metadata } = object.metadata;
  return {
    ...object,
    metadata: { name, uid, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z", ...metadata },
  };
}

const REVIEWS = {
  StatefulSet: {
    operation: "UPDATE",
    kind: { group: "apps", version: "v1", kind: "StatefulSet" },
    resource: { group: "apps", version: "v1", resource: "statefulsets" },
  },
  Pod: {
    operation: "DELETE",
    kind: { group: "", version: "v1", kind: "Pod" },
    resource: { group: "", version: "v1", resource: "pods" },
  },
  Eviction: {
    operation: "CREATE",
    subResource: "eviction",
    kind: { group: "policy", version: "v1", kind: "Eviction" },
    resource: { group: "", version: "v1", resource: "pods" },
  },
} as const;

/** The update of a StatefulSet, the deletion of a pod, or its eviction. */
export const review = (
  of: keyof typeof REVIEWS,
  name: string,
  more: Partial<AdmissionRequest> = {},
): AdmissionRequest => ({ uid: "u", namespace: "default", name, dryRun: false, ...REVIEWS[of], ...more });
