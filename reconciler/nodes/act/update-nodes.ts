/**
 * Node updates, as a step of the tick: gather -> decide -> act, for each policy in turn, until nothing is left to do.
 *
 *   list policies, shadows, nodes -> plan, reading pods where the plan asks for it -> write the policy's status -> write shadows -> again
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
import { matchesLabels } from "../../model/label-selector.ts";
import type { UpdateNode } from "../node.ts";
import type { GoingNode } from "../snapshot.ts";
import type { ShadowWrite } from "../plan-pass.ts";
import { type InvalidPolicy, POLICY_KIND, type Policy, activeNodesOf, isInvalid } from "../policy.ts";
import { planUpkeep } from "../upkeep.ts";
import type { Recorder } from "../../report/act/reporter.ts";
import { gatherNodes, type NodeLists } from "./gather-nodes.ts";
import { createPodReader, type ReadPods } from "./read-pods.ts";
import { draftInvalid, draftPass, draftUncordon } from "../node-events.ts";
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

interface ActiveLists extends NodeLists {
  /** The active nodes of each policy, by its name: the next policy of a pass sees those that one before has started. */
  readonly active: Map<string, readonly GoingNode[]>;
}

export function createNodeUpdates(options: NodeUpdateOptions): UpdateNodes {
  const { clock, log, metrics, namespace, intervalMs } = options;
  const definition = "a definition of infra/manifests/node-updates/crds";
  const kinds = createOptionalKind({ capability: "node updates", definition, againAfterMs: ABSENT_MS }, options);
  const memory: ReadingMemory = { intervalMs, held: new Map(), readAt: new Map() };
  /** Writes that the next status counts, by the UID of the policy: failed ones are not counted. */
  const uncounted = new Map<string, readonly ShadowWrite[]>();

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
    const lists = await kinds.read(() => gatherNodes(namespace, actor, call));
    if (!lists) return false;
    const seen = { annotations, found: lists.policies.length };
    if (await makeDefault(seen, options.defaultSpec, actor)) return true;
    const active = new Map(lists.policies.map((policy) => [policy.name, activeNodesOf(policy)]));
    const readPods = createPodReader({ ...actor, now: clock.now(), call });
    let wrote = false;
    for (const stored of lists.policies)
      wrote = (await passPolicy(stored, { ...lists, active }, { actor, recorder, readPods })) || wrote;
    metrics.nodesPassed(clock.now());
    const repaired = await repairNodes({ ...lists, active }, actor, recorder);
    return repaired || wrote;
  }

  async function passPolicy(
    policy: Policy | InvalidPolicy,
    lists: ActiveLists,
    { actor, recorder, readPods }: PassTools,
  ): Promise<boolean> {
    if (isInvalid(policy)) {
      recorder.emitEvents([draftInvalid(policy, policy.unreadable)]);
      return false;
    }
    const { nodes, contested } = nodesOf(policy, lists);
    const others = [...lists.active].flatMap(([name, going]) => (name === policy.name ? [] : going));
    const snapshot = { now: clock.now(), policy, nodes, contested, others, ownNode: options.ownNode };
    const plan = await planAfterReading(snapshot, readPods, memory);
    lists.active.set(policy.name, plan.status.active);
    const transitions = countTransitions(plan.status.transitions, uncounted.get(policy.uid) ?? []);
    const after = { ...plan.status, transitions };
    const change = { kind: POLICY_KIND, object: policy, before: policy.status, after };
    let wroteStatus: boolean;
    try {
      wroteStatus = (await writeStatus(nodeUpdatePolicies, change, actor)) !== undefined;
    } catch (error) {
      if (!isRefused(error)) throw error;
      // Its nodes stay as they are; the other policies continue, and spare the nodes of both statuses.
      lists.active.set(policy.name, [...activeNodesOf(policy), ...plan.status.active]);
      log.warn("node updates: the status of a policy was refused, and is tried again", { policy: policy.name, error });
      return false;
    }
    uncounted.delete(policy.uid);
    const taken = await writeShadows(plan, actor);
    for (const { write, error } of taken) {
      const { node, spec } = write;
      const fields = { node: node.name, state: spec.state, version: spec.version, policy: policy.name };
      if (error === undefined) log.info("node updates: a state is wanted", fields);
      else log.warn("node updates: a shadow could not be written, and is tried again", { ...fields, error });
    }
    const written = taken.filter(({ error }) => error === undefined).map(({ write }) => write);
    uncounted.set(policy.uid, written);
    recorder.emitEvents(draftPass(policy, plan, written));
    return wroteStatus || written.length > 0;
  }

  /** `slots` are those that the pass has left: a node that it has released may be read by no later one. */
  async function repairNodes(
    { nodes, policies, active: slots }: ActiveLists,
    actor: Actor,
    recorder: Recorder,
  ): Promise<boolean> {
    const valid = policies.filter((policy): policy is Policy => !isInvalid(policy));
    const active = new Map(
      valid.flatMap(({ name, features }) =>
        (slots.get(name) ?? []).map(({ node }) => [node, features.protectFromScaleDown] as const),
      ),
    );
    const released = new Set(valid.flatMap(({ status }) => status.deferred.map(({ node }) => node)));
    const governed = new Set(
      policies.flatMap((policy) => nodesOf(policy, { nodes, policies }).nodes.map(({ name }) => name)),
    );
    const upkeep = planUpkeep({ now: clock.now(), nodes, active, released, governed });
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

/** The nodes of a policy: those that it selects and that no other policy has active, and its own active ones. */
function nodesOf(
  policy: Policy | InvalidPolicy,
  { nodes, policies }: Pick<NodeLists, "nodes" | "policies">,
): { readonly nodes: readonly UpdateNode[]; readonly contested: ReadonlyMap<string, readonly string[]> } {
  const own = new Set(activeNodesOf(policy).map(({ node }) => node));
  const others = policies.filter(({ name }) => name !== policy.name);
  const taken = new Set(others.flatMap(activeNodesOf).map(({ node }) => node));
  const selects = (selector: Readonly<Record<string, string>>, node: UpdateNode): boolean =>
    node.managed && matchesLabels(selector, node.labels);
  const found = nodes.filter(
    (node) => own.has(node.name) || (selects(policy.nodeSelector, node) && !taken.has(node.name)),
  );
  const contested = found.flatMap((node) => {
    const also = others.filter(({ nodeSelector }) => selects(nodeSelector, node)).map(({ name }) => name);
    return also.length > 0 && !own.has(node.name) ? [[node.name, [policy.name, ...also].toSorted()] as const] : [];
  });
  return { nodes: found, contested: new Map(contested) };
}

/** On the reconciler's Lease, once a policy was seen. */
const SEEN = "zonewise/node-update-policy-seen";

interface PolicyMemory {
  /** Annotations of the Lease; written with its next renewal. */
  readonly annotations: Map<string, string>;
  /** The number of policies. */
  readonly found: number;
}

/**
 * Makes the policy `default` from the original's variables if there has never been a policy; resolves with true if it
 * did. It selects every managed node: it is not made again after a person has deleted it, nor while the only policy is
 * replaced by another one. Rejects with the error of the API server.
 */
async function makeDefault(
  { annotations, found }: PolicyMemory,
  spec: object,
  { cluster, fence }: Pick<Actor, "cluster" | "fence">,
): Promise<boolean> {
  if (found > 0 || annotations.has(SEEN)) {
    annotations.set(SEEN, "true");
    return false;
  }
  const body = { apiVersion: "zonewise.dev/v1", kind: POLICY_KIND, metadata: { name: "default" }, spec };
  // Another installation may make it at the same time.
  await cluster.create(nodeUpdatePolicies, { body }, fence.write()).catch((error: unknown) => {
    if (!hasCode(error, "AlreadyExists")) throw error;
  });
  return true;
}
