/**
 * Node updates, as a step of the tick: gather -> decide -> act, until nothing is left to do.
 *
 *   list policy, shadows, nodes -> plan, reading pods where the plan asks for it -> write the policy's status -> write shadows -> again
 *                                 -> shadows that are missing or left over, cordons to undo
 */
import type { Clock } from "../../../infra/clock.ts";
import { hasCode, isRefused, isSuperseded } from "../../../infra/errors.ts";
import type { Actor, Context } from "../../../infra/kubernetes/context.ts";
import { createOptionalKind } from "../../../infra/kubernetes/optional-kind.ts";
import { nodeUpdatePolicies } from "../../../infra/kubernetes/custom-resources.ts";
import { writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Log } from "../../../infra/log.ts";
import type { Metrics } from "../../../infra/metrics/metrics.ts";
import type { UpdateNode } from "../node.ts";
import type { ShadowWrite } from "../plan-pass.ts";
import { type ActiveNode, type Policy, POLICY_KIND, POLICY_NAME } from "../policy.ts";
import { planUpkeep } from "../upkeep.ts";
import type { Recorder } from "../../report/act/reporter.ts";
import { gatherNodes, type NodeLists } from "./gather-nodes.ts";
import { createPodReader, type ReadPods } from "./read-pods.ts";
import { draftPass, draftUncordon } from "../node-events.ts";
import { type ReadingMemory, planAfterReading } from "./plan-after-reading.ts";
import { countTransitions, takeUpkeep, writeShadows } from "./write-plan.ts";

export interface NodeUpdateOptions {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "nodesPassed">;
  /** The namespace of the shadows. */
  readonly namespace: string;
  readonly ownNode: string | undefined;
  /** Milliseconds between two ticks in which nothing happens. */
  readonly intervalMs: number;
  /** The spec of the policy `default`, which is made if there is none. */
  readonly defaultSpec: object;
}

interface NodePassTools {
  readonly recorder: Recorder;
  /** Annotations of the Lease; written with its next renewal. */
  readonly annotations: Map<string, string>;
}

/** Resolves with true if something was written, so that the next tick follows at once; never rejects. */
export type UpdateNodes = (context: Omit<Context, "clock">, tools: NodePassTools) => Promise<boolean>;

/** Passes in one tick: wiping one update and starting the next take two. */
const MAX_PASSES = 4;
/** Milliseconds until a missing definition is looked for again. */
const ABSENT_MS = 60_000;
/** Milliseconds of a call that reads. */
const READ_MS = 20_000;

interface PassTools {
  readonly actor: Actor;
  readonly recorder: Recorder;
  readonly readPods: ReadPods;
}

/** What a pass over the policy has done. */
interface Passed {
  readonly wrote: boolean;
  /** The nodes in its slots; if its status was refused, both those that are stored and those that were to be. */
  readonly active: readonly ActiveNode[];
}

export function createNodeUpdates(options: NodeUpdateOptions): UpdateNodes {
  const { clock, log, metrics, namespace, intervalMs } = options;
  const definition = "a definition of infra/manifests/node-updates/crds";
  const kinds = createOptionalKind({ capability: "node updates", definition, againAfterMs: ABSENT_MS }, options);
  const memory: ReadingMemory = { intervalMs, held: new Map(), readAt: new Map() };
  /** Writes that the next status counts: failed ones are not counted. */
  let uncounted: readonly ShadowWrite[] = [];

  return async (context, tools) => {
    let acted = false;
    try {
      for (let pass = 1; pass <= MAX_PASSES && !context.stop.aborted; pass++) {
        const wrote = await passOnce(context, tools);
        acted ||= wrote;
        if (!wrote) break;
      }
    } catch (error) {
      if (hasCode(error, "Cancelled", "LeaseLost")) return acted;
      log[isSuperseded(error) ? "info" : "warn"]("node updates: the pass ended early, and is repeated", { error });
    }
    return acted;
  };

  async function passOnce(
    { stop, ...actor }: Omit<Context, "clock">,
    { recorder, annotations }: NodePassTools,
  ): Promise<boolean> {
    const call = { deadlineMs: READ_MS, signal: stop };
    const found = await kinds.read(() => gatherNodes(namespace, actor, call));
    if (!found) return false;
    const { policy, nodes } = found;
    if (await makeDefault({ annotations, isFound: policy !== undefined }, options.defaultSpec, actor)) return true;
    const readPods = createPodReader({ ...actor, now: clock.now(), call });
    const passed = policy
      ? await passPolicy(policy, nodes, { actor, recorder, readPods })
      : { wrote: false, active: [] };
    metrics.nodesPassed(clock.now());
    const repaired = await repairNodes({ policy, nodes, active: passed.active }, actor, recorder);
    return repaired || passed.wrote;
  }

  async function passPolicy(
    policy: Policy,
    found: readonly UpdateNode[],
    { actor, recorder, readPods }: PassTools,
  ): Promise<Passed> {
    const stored = policy.status.active;
    const nodes = found.filter(({ managed, name }) => managed || stored.some(({ node }) => node === name));
    const snapshot = { now: clock.now(), policy, nodes, ownNode: options.ownNode };
    const plan = await planAfterReading(snapshot, readPods, memory);
    const { active } = plan.status;
    const after = { ...plan.status, transitions: countTransitions(plan.status.transitions, uncounted) };
    const change = { kind: POLICY_KIND, object: policy, before: policy.status, after };
    let wroteStatus: boolean;
    try {
      wroteStatus = (await writeStatus(nodeUpdatePolicies, change, actor)) !== undefined;
    } catch (error) {
      if (!isRefused(error)) throw error;
      log.warn("node updates: the status of the policy was refused, and is tried again", { error });
      return { wrote: false, active: [...stored, ...active] };
    }
    const taken = await writeShadows(plan, actor);
    for (const { write, error } of taken) {
      const { node, spec } = write;
      const fields = { node: node.name, state: spec.state, version: spec.version };
      if (error === undefined) log.info("node updates: a state is wanted", fields);
      else log.warn("node updates: a shadow could not be written, and is tried again", { ...fields, error });
    }
    uncounted = taken.filter(({ error }) => error === undefined).map(({ write }) => write);
    recorder.emitEvents(draftPass(policy, plan, uncounted));
    return { wrote: wroteStatus || uncounted.length > 0, active };
  }

  /** `active` are the slots that the pass has left. */
  async function repairNodes(
    { policy, nodes, active }: NodeLists & Pick<Passed, "active">,
    actor: Actor,
    recorder: Recorder,
  ): Promise<boolean> {
    const isProtected = policy?.features.protectFromScaleDown ?? false;
    const upkeep = planUpkeep({
      now: clock.now(),
      nodes,
      active: new Map(active.map(({ node }) => [node, isProtected])),
      released: new Set(policy?.status.deferred.map(({ node }) => node)),
      isGoverned: policy !== undefined,
    });
    const results = await takeUpkeep(upkeep, namespace, actor);
    for (const { write, error } of results) {
      const { action, node } = write;
      if (error !== undefined)
        log.warn(`node updates: ${action} failed, and is tried again`, { node: node.name, error });
      else log.info(`node updates: ${action}`, { node: node.name });
      if (error === undefined && action === "uncordon") recorder.emitEvents([draftUncordon(node)]);
    }
    return results.some(({ error }) => error === undefined);
  }
}

/** On the reconciler's Lease, once a policy was seen. */
const SEEN = "zonewise/node-update-policy-seen";

interface PolicyMemory {
  /** Annotations of the Lease; written with its next renewal. */
  readonly annotations: Map<string, string>;
  readonly isFound: boolean;
}

/**
 * Makes the policy `default` from the original's variables if there has never been a policy; resolves with true if it
 * did. It is not made again after a person has deleted it. Rejects with the error of the API server.
 */
async function makeDefault(
  { annotations, isFound }: PolicyMemory,
  spec: object,
  { cluster, fence }: Pick<Actor, "cluster" | "fence">,
): Promise<boolean> {
  if (isFound || annotations.has(SEEN)) {
    annotations.set(SEEN, "true");
    return false;
  }
  const body = { apiVersion: "zonewise.dev/v1", kind: POLICY_KIND, metadata: { name: POLICY_NAME }, spec };
  // Another installation may make it at the same time.
  await cluster.create(nodeUpdatePolicies, { body }, fence.write()).catch((error: unknown) => {
    if (!hasCode(error, "AlreadyExists")) throw error;
  });
  return true;
}
