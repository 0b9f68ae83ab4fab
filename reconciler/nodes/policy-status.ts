/**
 * The status of a NodeUpdatePolicy: all that the controller must remember from tick to tick. `active` records the
 * slots: it is written with the policy's resourceVersion before the shadow of a node is, so that two ticks cannot start
 * one node each.
 */
import * as z from "zod";
import { storedResult } from "../checks/result.ts";

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
  shadowUid: z.string(),
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

/** The schedule of a one-shot window. */
const campaign = z.object({
  cron: z.string(),
  timeZone: z.string(),
  /** Occurrences up to this time are over. */
  handledThrough: z.string(),
});

/** The checks before the next start. */
const startChecks = z.object({
  /** When a node could first start, or the last one left its slot: initial delays begin then. */
  since: z.string(),
  results: z.array(storedResult).default([]),
});

export const policyStatus = z.object({
  observedGeneration: z.int().default(0),
  nodes: z
    .object({ total: z.int(), upToDate: z.int(), waiting: z.int(), active: z.int(), failed: z.int() })
    .default({ total: 0, upToDate: 0, waiting: 0, active: 0, failed: 0 }),
  active: z.array(active).default([]),
  /** At most 50; `skipped` counts all. */
  waiting: z.array(waiting).default([]),
  /** Nodes that wait, by reason. */
  skipped: z.record(z.string(), z.int()).default({}),
  failed: z.array(failed).default([]),
  deferred: z.array(deferred).default([]),
  frozen: frozen.optional(),
  /** The zone whose nodes are being updated. */
  zone: z.string().optional(),
  windowOpen: z.boolean().default(true),
  campaign: campaign.optional(),
  /** Only while a node could start. */
  checks: startChecks.optional(),
  transitions: z.array(transition).default([]),
  /** Why the policy starts nothing at all, in a sentence; empty if it may. */
  message: z.string().default(""),
});

export type Workload = z.infer<typeof workload>;
export type ActiveNode = z.infer<typeof active>;
export type FailedNode = z.infer<typeof failed>;
export type DeferredNode = z.infer<typeof deferred>;
export type Freeze = z.infer<typeof frozen>;
export type TransitionCount = z.infer<typeof transition>;
export type PolicyStatus = z.infer<typeof policyStatus>;

export const NO_STATUS: PolicyStatus = policyStatus.parse({});
