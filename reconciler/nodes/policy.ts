/**
 * The NodeUpdatePolicy `default`: when nodes are updated, and how many at once. Values that its schema refuses are refused
 * here as well, with a sentence. Its status is the controller's memory.
 */
import * as z from "zod";
import type { CustomObject } from "../../infra/kubernetes/custom-resources.ts";
import { RolloutError } from "../../infra/errors.ts";
import { readIdentity } from "../../infra/kubernetes/identity.ts";
import { parseWindow, type Window } from "../model/window.ts";

export const POLICY_KIND = "NodeUpdatePolicy";
/** The only one: two would update nodes of two zones at once. Its definition refuses other names. */
export const POLICY_NAME = "default";

const MONTH_S = 30 * 86_400;
const seconds = (byDefault: number, least = 1) => z.int().min(least).max(MONTH_S).default(byDefault);
/** A section that may be left out. */
const section = <T extends z.ZodRawShape>(shape: T) => z.prefault(z.object(shape), {} as never);

/** The fields that users write. */
export const policySpec = z.object({
  /** False: no update starts; those that run finish. */
  enabled: z.boolean().default(true),
  /** `1`, `25%` of the nodes (rounded down, at least one), or `unlimited`. */
  maxConcurrent: z
    .union([z.int().min(0), z.string().regex(/^(?:\d{1,6}|(?:100|[1-9]?\d)%|unlimited)$/i)])
    .default(1)
    .transform(readLimit),
  window: z
    .object({
      cron: z.string().min(1).max(200),
      timeZone: z.string().min(1).max(100).default("UTC"),
      /** No update starts in the last seconds of a window. */
      lastStartSeconds: z.int().min(0).max(86_400).default(0),
      /** A one-shot ends after that time at the latest. */
      durationSeconds: z.int().min(1).max(MONTH_S).optional(),
    })
    .optional(),
  health: section({ minReadySeconds: seconds(60, 0), timeoutSeconds: seconds(900) }),
  /** As many failures after a reboot freeze the policy. */
  maxFailed: z.int().min(1).max(100).default(1),
  drain: section({ timeoutSeconds: seconds(3600), onTimeout: z.enum(["Uncordon", "Reboot"]).default("Uncordon") }),
  deadlines: section({
    stageSeconds: seconds(1800),
    holdSeconds: seconds(600),
    rebootSeconds: seconds(900),
    recoverSeconds: seconds(300),
  }),
  features: section({ protectFromScaleDown: z.boolean().default(false) }),
  /** The `id` of the freeze that a person has reviewed: updates continue. */
  unfreeze: z.string().optional(),
});

/**
 * The status: all that the controller must remember from tick to tick. `active` records the slots: it is written with the
 * policy's resourceVersion before the shadow of a node is, so that two ticks cannot start one node each.
 */

/** A controller whose pods were on the node when it was about to be drained. */
const workload = z.object({
  kind: z.string(),
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  /** Ready replicas at that time. */
  ready: z.int(),
});

/** The phases of a node's update. */
export const NODE_PHASES = [
  "Starting",
  "Staging",
  "Holding",
  "Draining",
  "Rebooting",
  "Returning",
  "Monitoring",
  "Recovering",
] as const;
export type NodePhase = (typeof NODE_PHASES)[number];

const active = z.object({
  node: z.string(),
  nodeUid: z.string(),
  /** The versions before and after. */
  from: z.string(),
  to: z.string(),
  zone: z.string().optional(),
  /** The node's boot id when it was started; empty if that is unknown. */
  bootId: z.string(),
  startedAt: z.string(),
  phase: z.enum(NODE_PHASES),
  /** When the phase began. */
  since: z.string(),
  /** The reason to wait, other than the node's agent, in a sentence. */
  waitsFor: z.string().optional(),
  workloads: z.array(workload).optional(),
  /** Why the attempt was given up, once it was: the node is on its way back. */
  ending: z.object({ reason: z.string(), message: z.string() }).optional(),
});

/** An attempt that failed after its reboot, or that left its node unusable. */
const failed = z.object({
  node: z.string(),
  /** When the attempt started: its key, together with the node. */
  startedAt: z.string(),
  to: z.string(),
  at: z.string(),
  reason: z.string(),
  message: z.string(),
});

/** Characters of a reason: agents write part of some. */
export const MAX_MESSAGE = 300;

/** Characters of the reasons that thousands of nodes may have: an object has 1.5 MB at most. */
export const MAX_WAIT_TEXT = 200;

/** Why a node waits that a person has released from the freeze that it caused. */
export const RELEASED = "ReleasedByHand";

/** A node that goes to the end of the queue, and waits by the back-off of `count` attempts. */
const deferred = z.object({
  node: z.string(),
  count: z.int().min(0),
  at: z.string(),
  reason: z.string(),
  /** What ended the attempt: of a drain, the pods that were left and the budget that kept each. */
  message: z.string().optional(),
});

const frozen = z.object({ id: z.string(), at: z.string(), reason: z.string(), message: z.string() });

const transition = z.object({
  from: z.string(),
  to: z.string(),
  fromVersion: z.string(),
  toVersion: z.string(),
  count: z.int(),
});

const waiting = z.object({ node: z.string(), reason: z.string(), message: z.string() });

/** A one-shot window: it opens when it fires, and closes when no node is left to be updated. */
const campaign = z.object({
  cron: z.string(),
  timeZone: z.string(),
  /** Occurrences up to this time are over. */
  handledThrough: z.string(),
});

export const policyStatus = z.object({
  observedGeneration: z.int().default(0),
  nodes: z
    .object({ total: z.int(), upToDate: z.int(), waiting: z.int(), active: z.int(), failed: z.int() })
    .default({ total: 0, upToDate: 0, waiting: 0, active: 0, failed: 0 }),
  active: z.array(active).default([]),
  /** At most 50, first those that need a person; `skipped` counts all. */
  waiting: z.array(waiting).default([]),
  /** Nodes that wait, by reason. */
  skipped: z.record(z.string(), z.int()).default({}),
  failed: z.array(failed).default([]),
  deferred: z.array(deferred).default([]),
  frozen: frozen.optional(),
  /** The zone whose nodes are being updated. */
  zone: z.string().optional(),
  campaign: campaign.optional(),
  transitions: z.array(transition).default([]),
  /** Why the policy starts nothing at all, in a sentence; empty if it may. */
  message: z.string().default(""),
});

export type Workload = z.infer<typeof workload>;
export type ActiveNode = z.infer<typeof active>;
export type FailedNode = z.infer<typeof failed>;
export type DeferredNode = z.infer<typeof deferred>;
export type Freeze = z.infer<typeof frozen>;
export type Campaign = z.infer<typeof campaign>;
export type TransitionCount = z.infer<typeof transition>;
export type PolicyStatus = z.infer<typeof policyStatus>;

export const NO_STATUS: PolicyStatus = policyStatus.parse({});

/** How many nodes may be active at once. */
type Limit = { readonly nodes: number } | { readonly percent: number } | "unlimited";

export interface Policy extends Omit<z.infer<typeof policySpec>, "window"> {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  /** Undefined: always open. */
  readonly window: Window | undefined;
  /** Why the spec cannot be obeyed: nothing starts, and active nodes finish by the defaults. */
  readonly problem: string | undefined;
  readonly status: PolicyStatus;
}

function readLimit(written: number | string): Limit {
  const text = String(written).toLowerCase();
  if (text === "unlimited") return "unlimited";
  return text.endsWith("%") ? { percent: Number(text.slice(0, -1)) } : { nodes: Number(text) };
}

/** Nodes that may be active of `total`: a percentage is rounded down, and at least one unless it is 0 %. */
export function allowedActive(limit: Limit, total: number): number {
  if (limit === "unlimited") return Number.POSITIVE_INFINITY;
  if ("nodes" in limit) return limit.nodes;
  return limit.percent === 0 ? 0 : Math.max(1, Math.floor((limit.percent * total) / 100));
}

/** Reads the policy as stored. Throws if its status cannot be read: then nobody knows which nodes are active. */
export function readPolicy({ metadata, spec = {}, status = {} }: CustomObject): Policy {
  const { data: remembered, error } = policyStatus.safeParse(status);
  if (!remembered)
    throw new RolloutError("ServerError", `${POLICY_KIND} ${POLICY_NAME}: ${problemOf("status", error)}`);
  return { ...readSpec(spec), ...readIdentity(metadata), generation: metadata.generation ?? 0, status: remembered };
}

type Content = Pick<Policy, keyof z.infer<typeof policySpec> | "problem">;

/** The spec, or the defaults and the problem with it. */
function readSpec(written: unknown): Content {
  const read = policySpec.safeParse(written);
  const window = read.data?.window && parseWindow(read.data.window);
  const problem =
    window && "problem" in window ? `spec.window: ${window.problem}` : read.error && problemOf("spec", read.error);
  if (read.data && !(window && "problem" in window)) return { ...read.data, window, problem: undefined };
  return { ...policySpec.parse({}), window: undefined, problem };
}

function problemOf(part: string, { issues: [first] }: Pick<z.ZodError, "issues"> = { issues: [] }): string {
  return `${[part, ...(first?.path ?? [])].join(".")}: ${first?.message ?? "not valid"}`;
}
