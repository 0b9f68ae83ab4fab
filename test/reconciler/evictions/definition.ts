/**
 * The declarative eviction API of Kubernetes 1.37 (alpha; k8s.io/api v0.37.2, lifecycle/v1alpha1/types.go), as a
 * CustomResourceDefinition for clusters that do not serve it, and the rules of its validation that a responder has to
 * keep (k8s.io/kubernetes v1.37.2, pkg/apis/lifecycle/validation/validation.go).
 */
import { isSameJson } from "../../../infra/json.ts";

const name = { type: "string", minLength: 1 };
const uid = { type: "string", pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" };
/** Of requesters and responders: a label key with its domain. */
const key = { type: "string", pattern: "^[a-z0-9.-]+/[A-Za-z0-9._-]+$" };
const time = { type: "string", format: "date-time" };
const list = (properties: object, required: readonly string[], mapKey: string, maxItems: number) => ({
  type: "array",
  maxItems,
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": [mapKey],
  items: { type: "object", properties, required },
});

const STATES = ["Inactive", "Active", "Interrupted", "Canceled", "Completed"];

const EVICTION = {
  type: "object",
  required: ["spec"],
  properties: {
    spec: {
      type: "object",
      required: ["target"],
      properties: {
        target: {
          type: "object",
          properties: { pod: { type: "object", required: ["name", "uid"], properties: { name, uid } } },
        },
      },
    },
    status: {
      type: "object",
      properties: {
        observedGeneration: { type: "integer", minimum: 1 },
        conditions: list(
          {
            type: name,
            status: { type: "string", enum: ["True", "False", "Unknown"] },
            observedGeneration: { type: "integer", minimum: 0 },
            reason: name,
            message: { type: "string" },
            lastTransitionTime: time,
          },
          ["type", "status", "reason", "message", "lastTransitionTime"],
          "type",
          100,
        ),
        requesters: list(
          { name: key, intent: { type: "string", enum: ["Eviction", "Withdrawn"] } },
          ["name", "intent"],
          "name",
          100,
        ),
        targetResponders: list(
          {
            name: key,
            priority: { type: "integer", minimum: 0, maximum: 100_000 },
            state: { type: "string", enum: STATES },
          },
          ["name", "priority", "state"],
          "name",
          11,
        ),
        responders: list(
          {
            name: key,
            startTime: time,
            heartbeatTime: time,
            expectedCompletionTime: time,
            completionTime: time,
            message: { type: "string", maxLength: 4000 },
          },
          ["name"],
          "name",
          11,
        ),
      },
    },
  },
};

export const EVICTIONS = "evictions.lifecycle.k8s.io";

/** An API server takes a definition in a group of Kubernetes only with the annotation. */
export const EVICTION_DEFINITION = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: EVICTIONS, annotations: { "api-approved.kubernetes.io": "unapproved, a stand-in for tests" } },
  spec: {
    group: "lifecycle.k8s.io",
    scope: "Namespaced",
    names: { kind: "Eviction", listKind: "EvictionList", plural: "evictions", singular: "eviction" },
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: EVICTION },
      },
    ],
  },
};

/** Of `status.responders`. */
export interface Entry {
  readonly name: string;
  readonly startTime?: string;
  readonly heartbeatTime?: string;
  readonly expectedCompletionTime?: string;
  readonly completionTime?: string;
  readonly message?: string;
}

export interface EvictionStatus {
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  readonly requesters?: readonly { readonly name: string; readonly intent: string }[];
  readonly targetResponders?: readonly { readonly name: string; readonly priority: number; readonly state: string }[];
  readonly responders?: readonly Entry[];
}

const SKEW_MS = 30_000;
const at = (text: string | undefined): number => Date.parse(text ?? "");

/**
 * What the API server would refuse in a responder's update of a status, as sentences; also the order of entries and the
 * pace of heartbeats, which it only asks for.
 */
export function refusals(before: EvictionStatus, after: EvictionStatus, now: number): string[] {
  const { responders: _, ...others } = before;
  const { responders: __, ...othersAfter } = after;
  const found = isSameJson(others, othersAfter) ? [] : ["only status.responders is a responder's"];
  const [old, next] = [before.responders ?? [], after.responders ?? []];
  if (old.map(({ name }) => name).join() !== next.map(({ name }) => name).join())
    return [...found, "the keys of status.responders must stay, in their order"];
  for (const [i, entry] of next.entries()) {
    const was = old[i] ?? { name: "" };
    if (isSameJson(was, entry)) continue;
    const state = before.targetResponders?.find(({ name }) => name === entry.name)?.state;
    if (state !== "Active") found.push(`${entry.name} is ${state}: its entry is immutable`);
    found.push(...refusalsOf(was, entry, now).map((why) => `${entry.name}: ${why}`));
  }
  return found;
}

function refusalsOf(was: Entry, is: Entry, now: number): string[] {
  const isNear = (text: string): boolean => Math.abs(at(text) - now) < SKEW_MS;
  const { startTime, heartbeatTime: heartbeat, expectedCompletionTime: expected, completionTime: completed } = is;
  const rules: readonly (readonly [boolean, string])[] = [
    [was.startTime !== startTime, "startTime is immutable"],
    [was.completionTime !== undefined && was.completionTime !== completed, "completionTime is immutable"],
    [was.heartbeatTime !== undefined && heartbeat === undefined, "heartbeatTime is required once set"],
    ...(heartbeat !== undefined && heartbeat !== was.heartbeatTime
      ? ([
          [at(heartbeat) < at(was.heartbeatTime), "heartbeatTime cannot be decreased"],
          [at(heartbeat) < at(startTime), "heartbeatTime must occur after startTime"],
          [!isNear(heartbeat), "heartbeatTime must be set to the present time"],
          [at(heartbeat) - at(was.heartbeatTime) < 20_000, "heartbeats more frequent than 20 seconds"],
        ] as const)
      : []),
    ...(expected !== undefined && expected !== was.expectedCompletionTime
      ? ([
          [at(expected) < at(startTime), "expectedCompletionTime must occur after startTime"],
          [at(expected) < now - SKEW_MS, "expectedCompletionTime cannot be set to the past"],
          [at(expected) > now + 10 * 365 * 86_400_000, "expectedCompletionTime must be within 10 years"],
        ] as const)
      : []),
    ...(completed !== undefined && completed !== was.completionTime
      ? ([
          [at(completed) < at(startTime), "completionTime must occur after startTime"],
          [!isNear(completed), "completionTime must be set to the present time"],
        ] as const)
      : []),
    [(is.message ?? "").length > 4000, "message is too long"],
  ];
  return rules.filter(([isBroken]) => isBroken).map(([, why]) => why);
}
