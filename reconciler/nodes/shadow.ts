/**
 * A BottlerocketShadow: the state that the controller wants of a node (`spec`), and the agent's report (`status`).
 * Keys are snake_case, as on the wire.
 */
import * as z from "zod/mini";
import type { ObjectMeta } from "../../infra/kubernetes/resources.ts";

export const SHADOW_GROUP = "brupop.bottlerocket.aws";
export const SHADOW_KIND = "BottlerocketShadow";

/** Nodes with this label are managed; users set it. */
export const MANAGED_LABEL = "bottlerocket.aws/updater-interface-version";
export const MANAGED_VALUE = "2.0.0";
/** On a Node that we cordoned: the UID of its shadow. Set and removed in one patch with the cordon: `node-marks.ts`. */
export const CORDONED_BY = "zonewise.dev/cordoned-by";
/** On a Node that we excluded from load balancers: the UID of its shadow, set and removed with the label below. */
export const EXCLUDED_BY = "zonewise.dev/excluded-by";
/** On a Node that load balancers are to leave out, with the value `True`. */
export const LB_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers";

export const shadowName = (nodeName: string): string => `brs-${nodeName}`;

export const STATES = [
  "Idle",
  "StagedAndPerformedUpdate",
  "RebootedIntoUpdate",
  "MonitoringUpdate",
  "ErrorReset",
] as const;
export type State = (typeof STATES)[number];
/** The states that a spec may ask for; the schema of the CRD allows ErrorReset as well, which nobody writes. */
export type WantedState = Exclude<State, "ErrorReset">;

const timestamp = z.nullable(z.string());
export const MAX_CRASHES = 4_294_967_295;
const count = z.int().check(z.gte(0), z.lte(MAX_CRASHES));
/** Agents write these texts, and each of them is copied to the status of a policy. */
const shortText = z.string().check(z.maxLength(256));

/** A pod that could not be evicted in the last round. */
const blockedPod = z.looseObject({
  namespace: z.string(),
  name: z.string(),
  /** `DisruptionBudget`, `Terminating` (evicted, not gone yet), or a code of infra/errors.ts. */
  reason: z.string(),
  message: z.optional(z.string()),
});

/** The progress of a drain. Written by the API only. */
const drainProgress = z.looseObject({
  /** When the first round began. */
  started_at: z.string(),
  /** When the last round ended. */
  round_at: z.string(),
  /** Evictable pods that are still on the node; 0 once it is drained. */
  remaining: count,
  /** At most 20 of them. */
  blocked: z.array(blockedPod),
});

/**
 * Written right before the reboot, with the shadow's resourceVersion: after that nothing uncordons the node until it is
 * back.
 */
const rebooting = z.looseObject({
  /** The boot that the reboot ends. */
  boot_id: z.string(),
  at: z.string(),
});

/** Loose: keys of later versions survive. */
export const shadowStatus = z.looseObject({
  current_version: shortText,
  /** Equals `current_version` when there is nothing to do. */
  target_version: shortText,
  current_state: z.enum(STATES),
  /** Failed attempts in a row. */
  crash_count: count,
  state_transition_failure_timestamp: z.optional(timestamp),
  /** The rest is ours: optional, and kept by the API when an agent's PUT lacks it; `null` removes it. */
  /** /proc/sys/kernel/random/boot_id of the host at its last report. */
  boot_id: z.nullish(shortText),
  /** When the API first stored this boot id, by its own clock. */
  boot_reported_at: z.optional(timestamp),
  rebooting: z.nullish(rebooting),
  drain: z.nullish(drainProgress),
  /** Why the last attempt failed, in a sentence. Written by the agent with ErrorReset. */
  failure_reason: z.nullish(z.string().check(z.maxLength(4096))),
});

export const shadowSpec = z.looseObject({
  state: z.enum(STATES),
  /** When `state` was set, RFC 3339. */
  state_transition_timestamp: z.optional(timestamp),
  /** The version that is wanted. */
  version: z.nullish(shortText),
});

export type BlockedPod = z.infer<typeof blockedPod>;
export type DrainStatus = z.infer<typeof drainProgress>;
export type ShadowStatus = z.infer<typeof shadowStatus>;
export type ShadowSpec = z.infer<typeof shadowSpec>;

/** The spec of new shadows; it also wipes the rest of an update. */
export const DEFAULT_SPEC = {
  state: "Idle",
  state_transition_timestamp: null,
  version: null,
} as const satisfies ShadowSpec;

/** The object, v2. */
interface ShadowObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: ShadowSpec;
  readonly status?: ShadowStatus | null;
}

/** The object to create for a node: the owner reference lets Kubernetes collect it with the node. */
export function newShadow(node: { readonly name: string; readonly uid: string }, namespace: string): ShadowObject {
  return {
    apiVersion: `${SHADOW_GROUP}/v2`,
    kind: SHADOW_KIND,
    metadata: {
      name: shadowName(node.name),
      namespace,
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: node.name, uid: node.uid }],
    },
    spec: { ...DEFAULT_SPEC },
  };
}
