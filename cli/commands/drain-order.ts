/**
 * `zonewise drain-order`: the order in which to drain nodes, and the nodes that may be drained together. It cordons and
 * evicts nothing.
 */
import { absent } from "../../infra/errors.ts";
import { nodes, pods } from "../../infra/kubernetes/resources.ts";
import { readPod, type Pod } from "../../reconciler/model/pod.ts";
import type { ZoneWithPods } from "../../reconciler/model/zone.ts";
import { isAllowed, VERDICTS, type Verdict } from "../../reconciler/budget/verdict.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import type { World } from "../../reconciler/plan/world.ts";
import { judgeDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import { findUnbudgeted, isDegraded, whyOthersComeFirst, zonesIn } from "../decide/unbudgeted.ts";
import { orderDrains, splitsOf, type Claim, type DrainNode, type Wave } from "../decide/waves.ts";
import { countUnavailable, type EvictionSnapshot } from "../../reconciler/budget/decide-eviction.ts";
import { EXIT } from "../exit.ts";
import { createGuards, gatherGuard, type Guards } from "../gather/guard.ts";
import { createPodBudgets, createPodWorlds, type PodBudgets } from "../gather/pod-world.ts";
import { gatherTicking } from "../gather/ticking.ts";
import { missing } from "../gather/suggest.ts";
import { print } from "../output/print.ts";
import { formatTable, type Cell } from "../output/table.ts";
import type { Command, Session } from "../session.ts";

const TOPOLOGY = "topology.kubernetes.io/zone";

export const drainOrder: Command = {
  name: "drain-order",
  arguments: "<nodes...>",
  group: "Look",
  summary: "Which nodes to drain together, and in which order",
  examples: [
    ["drain-order NODE NODE NODE", "which to drain together, and in which order"],
    ["drain-order NODE", "may this node be drained now?"],
  ],
  flags: [],
  exits: {
    0: "the first wave may begin",
    1: "a pod may not go: it has to wait, is refused, or no budget protects it",
    4: "the first wave may begin, but it is not known whether a webhook asks the budget",
  },
  completes: "nodes",
  asksTicking: true,
  async run(session, { args }) {
    const places = new Set<string>();
    const tools = {
      worlds: createPodWorlds(session),
      guards: createGuards(session),
      podBudgets: createPodBudgets(session),
      places,
    };
    const gathered = await Promise.all([...new Set(args)].map((name) => gatherNode(session, name, tools)));
    const waves = orderDrains(gathered);
    // A node has pods of any namespace.
    const noTicks = await gatherTicking(session, [...places]);
    print({ ...session, noTicks }, waves.map(toValue), () => render(waves, session));
    const claims = waves[0]?.nodes.flatMap((node) => node.claims) ?? [];
    if (waves.some(({ nodes }) => nodes.some((node) => node.claims.some((one) => one.isLasting)))) return EXIT.no;
    if (claims.some(({ refusal, unguarded }) => refusal !== undefined || unguarded !== undefined)) return EXIT.no;
    return claims.some(({ unseen }) => unseen !== undefined) ? EXIT.unknown : EXIT.ok;
  },
};

interface Tools {
  readonly worlds: ReturnType<typeof createPodWorlds>;
  readonly guards: Guards;
  readonly podBudgets: PodBudgets;
  /** Namespaces with a pod of a group, or under a budget, on the nodes. */
  readonly places: Set<string>;
}

async function gatherNode(session: Session, name: string, tools: Tools): Promise<DrainNode> {
  const node = await session.cluster.get(nodes, { name }).catch(absent);
  if (!node) throw await missing(session, { what: "nodes", name, message: `no node ${JSON.stringify(name)}` });
  // In all namespaces: a drain evicts all pods.
  const query = { fieldSelector: `spec.nodeName=${name}` };
  const { items } = await readAll({ resource: pods, query, read: readPod }, session);
  const claims = await Promise.all(items.filter(isOfZone).map((pod) => claim(pod, tools)));
  return { name, topologyZone: node.metadata?.labels?.[TOPOLOGY] ?? "", claims: claims.flat() };
}

/** Why no webhook asks the budget, why the webhook refuses every eviction, or why neither could be seen. */
async function seeGuard(pod: Pod, world: World, guards: Tools["guards"]) {
  const guard = await gatherGuard(guards, pod, world);
  if (!guard || guard.reason === "Guarded") return {};
  const { reason, message } = guard;
  if (reason === "NotSeen") return { unseen: message };
  return reason === "NoWebhook" ? { unguarded: message } : { refusal: message };
}

async function judge(pod: Pod, { worlds, places }: Tools) {
  const { world, group } = await worlds(pod);
  const judged = judgeDisruption(world, pod);
  if (judged.verdict.reason !== "PodNotInScope" || group !== undefined) places.add(pod.namespace);
  return { world, group, ...judged };
}

/** Empty for a pod under no budget and in no group. */
async function claim(pod: Pod, tools: Tools): Promise<Claim[]> {
  const { world, group, verdict, snapshot } = await judge(pod, tools);
  const zone = pod.madeBy ?? pod.controller?.name ?? "";
  const key = group === undefined ? undefined : `${pod.namespace}/${group}`;
  if (snapshot) return [{ ...(await claimByBudget(pod, snapshot, { world, verdict, tools })), group: key, zone }];
  const own = {
    pod,
    budget: undefined,
    group: key,
    zone,
    isDown: isDegraded(zoneOf(pod, zonesIn(world))),
  };
  // Several budgets select it, or one that is not valid: every eviction of it is refused.
  if (verdict.reason !== "PodNotInScope") return [{ ...own, refusal: verdict.message, isLasting: isLasting(verdict) }];
  if (group === undefined) return [];
  const { refusal } = await seeGuard(pod, world, tools.guards);
  if (refusal !== undefined) return [{ ...own, refusal }];
  const unbudgeted = findUnbudgeted({ pod, world, group }, await tools.podBudgets(pod.namespace));
  const unguarded = unbudgeted && `${unbudgeted.message}; zonewise -n ${pod.namespace} doctor proposes a budget`;
  return [{ ...own, refusal: whyOthersComeFirst(pod, world), unguarded }];
}

interface Judgement {
  readonly world: World;
  readonly verdict: Verdict;
  readonly tools: Tools;
}

async function claimByBudget(pod: Pod, snapshot: EvictionSnapshot, { world, verdict, tools }: Judgement) {
  const { budget, zones } = snapshot;
  const partition = budget.partitionOf?.(pod.name);
  const own = zoneOf(pod, zones);
  const down = own ? countUnavailable(own, snapshot, partition) : { notReady: 0, unknown: 0 };
  return {
    isLasting: isLasting(verdict),
    pod,
    budget: `${budget.namespace}/${budget.name}`,
    partition,
    isDown: down.notReady + down.unknown > 0,
    refusal: isAllowed(verdict) ? undefined : verdict.message,
    ...(await seeGuard(pod, world, tools.guards)),
  };
}

/** Of a StatefulSet, or of one that has left it behind. */
const isOfZone = ({ controller, madeBy }: Pod): boolean => controller?.kind === "StatefulSet" || madeBy !== undefined;

/** Until a StatefulSet that was created again adopts a pod of its name, it counts that as missing. */
const zoneOf = (pod: Pod, zones: readonly ZoneWithPods[]): ZoneWithPods | undefined =>
  zones.find(({ pods }) => pods.some(({ uid }) => uid === pod.uid)) ?? zones.find(({ name }) => name === pod.madeBy);

/** Waiting does not end it. */
const isLasting = ({ reason }: Verdict): boolean => VERDICTS[reason].code === 400 || reason === "MaxUnavailableZero";

function toValue({ nodes }: Wave): unknown {
  return nodes.map((node) => ({
    node: node.name,
    zone: node.topologyZone,
    splits: splitsOf(node),
    pods: node.claims.map(({ pod, zone, budget, group, refusal, unguarded, unseen }) => ({
      namespace: pod.namespace,
      pod: pod.name,
      statefulSet: zone,
      // JSON leaves out what is undefined.
      budget,
      group,
      refusal,
      unguarded,
      unseen,
    })),
  }));
}

function render(waves: readonly Wave[], { io }: Session): string {
  const rows = waves.flatMap(({ nodes }, i) => nodes.map((node) => describe(node, i + 1)));
  return formatTable(["WAVE", "NODE", "ZONE", "PODS", "NOW"], rows, io);
}

const YES = "yes";

/** A node of a later wave may go only once all pods of the wave before it are back. */
function describe(node: DrainNode, wave: number): Cell[] {
  const { claims, name, topologyZone } = node;
  const found = describeNow(claims);
  const now: typeof found =
    found.text === YES && wave > 1 ? { text: `after wave ${wave - 1}`, tone: "waiting" } : found;
  const [split] = splitsOf(node);
  const waits = claims.some(({ unguarded }) => unguarded !== undefined) ? "" : ": its drain waits in between";
  const text =
    split === undefined ? now : { ...now, text: `${now.text}; it has pods of several zones of ${split}${waits}` };
  return [String(wave), name, topologyZone, String(claims.length), text];
}

/** The first of these that applies to a pod of the node: it is refused for as long as nobody changes that, it has to wait, nothing guards it, it is unknown what does. */
function describeNow(claims: readonly Claim[]): Exclude<Cell, string> {
  const find = (what: "refusal" | "unguarded" | "unseen"): string | undefined =>
    claims.find((one) => one[what] !== undefined)?.[what];
  const [refusal, unguarded, unseen] = [find("refusal"), find("unguarded"), find("unseen")];
  const lasting = claims.find((one) => one.isLasting)?.refusal;
  if (lasting !== undefined) return { text: `refused: ${lasting}`, tone: "bad" };
  if (refusal !== undefined)
    return { text: `waits: ${refusal}${unguarded === undefined ? "" : `; ${unguarded}`}`, tone: "waiting" };
  if (unguarded !== undefined) return { text: `not guarded: ${unguarded}`, tone: "bad" };
  return unseen === undefined ? { text: YES, tone: "good" } : { text: `not known: ${unseen}`, tone: "warning" };
}
