/**
 * `zonewise drain-order`: the order in which to drain nodes, and the nodes that may be drained together. It cordons and
 * evicts nothing.
 */
import { absent } from "../../infra/errors.ts";
import { nodes, pods } from "../../infra/kubernetes/resources.ts";
import { readBudgetPod, type BudgetPod } from "../../reconciler/budget/budget-pod.ts";
import { isAllowed } from "../../reconciler/budget/verdict.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import type { World } from "../../reconciler/plan/world.ts";
import { judgeDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import { orderDrains, splitsOf, type BudgetClaim, type DrainNode, type Wave } from "../decide/waves.ts";
import { countUnavailable } from "../../reconciler/budget/unavailability.ts";
import { EXIT } from "../exit.ts";
import { createGuards, gatherGuard } from "../gather/guard.ts";
import { createPodWorlds } from "../gather/pod-world.ts";
import { gatherTicking } from "../gather/ticking.ts";
import { missing } from "../gather/suggest.ts";
import { print } from "../output/print.ts";
import { formatTable, type Cell } from "../output/table.ts";
import type { Command, Session } from "../session.ts";

const TOPOLOGY = "topology.kubernetes.io/zone";

export const drainOrder: Command = {
  name: "drain-order",
  arguments: "<nodes...>",
  summary: "In which order to drain nodes: those of a wave together, and the next wave once all pods are back",
  flags: [],
  exits: {
    0: "the first wave may begin",
    1: "a budget refuses a pod of the first wave for now, or no webhook asks the budget",
    4: "it may begin, and that a webhook asks the budget was not seen",
  },
  completes: "nodes",
  asksTicking: true,
  async run(session, { args }) {
    const places = new Set<string>();
    const tools = { worlds: createPodWorlds(session), guards: createGuards(session), places };
    const gathered = await Promise.all([...new Set(args)].map((name) => gatherNode(session, name, tools)));
    const waves = orderDrains(gathered);
    // A node has pods of any namespace.
    const noTicks = await gatherTicking(session, [...places]);
    print({ ...session, noTicks }, waves.map(toValue), () => render(waves, session));
    const claims = waves[0]?.nodes.flatMap((node) => node.claims) ?? [];
    if (claims.some(({ refusal }) => refusal !== undefined)) return EXIT.no;
    return claims.some(({ unseen }) => unseen !== undefined) ? EXIT.unknown : EXIT.ok;
  },
};

interface Tools {
  readonly worlds: ReturnType<typeof createPodWorlds>;
  readonly guards: ReturnType<typeof createGuards>;
  /** Namespaces with a pod of a group, or under a budget, on the nodes. */
  readonly places: Set<string>;
}

async function gatherNode(session: Session, name: string, tools: Tools): Promise<DrainNode> {
  const node = await session.cluster.get(nodes, { name }).catch(absent);
  if (!node) throw await missing(session, { what: "nodes", name, message: `no node ${JSON.stringify(name)}` });
  // In all namespaces: a drain evicts all pods.
  const query = { fieldSelector: `spec.nodeName=${name}` };
  const { items } = await readAll({ resource: pods, query, read: readBudgetPod }, session);
  const owned = items.filter(({ controller }) => controller?.kind === "StatefulSet");
  const claims = await Promise.all(owned.map((pod) => claim(pod, tools)));
  return { name, topologyZone: node.metadata?.labels?.[TOPOLOGY] ?? "", claims: claims.flat() };
}

/** The reason why no budget judges its eviction, or why that could not be seen. */
async function whyUnguarded(pod: BudgetPod, world: World, guards: Tools["guards"]) {
  const { state, message } = (await gatherGuard(guards, pod, world)) ?? { state: "guarded" };
  if (state === "guarded" || message === undefined) return {};
  return state === "unknown" ? { unseen: message } : { unguarded: message };
}

async function judge(pod: BudgetPod, { worlds, places }: Tools) {
  const { world, state } = await worlds(pod);
  const judged = judgeDisruption(world, pod);
  if (judged.snapshot || state) places.add(pod.namespace);
  return { world, ...judged };
}

/** Empty for a pod under no budget. */
async function claim(pod: BudgetPod, tools: Tools): Promise<BudgetClaim[]> {
  const { world, verdict, snapshot } = await judge(pod, tools);
  if (!snapshot) return [];
  const { budget, zones } = snapshot;
  const partition = budget.partitionOf?.(pod.name);
  const key = [`${budget.namespace}/${budget.name}`, ...(partition === undefined ? [] : [partition])].join(" ");
  const own = zones.find(({ uid }) => uid === pod.owner);
  const down = own ? countUnavailable(own, snapshot, partition) : { notReady: 0, unknown: 0 };
  const { unguarded, ...doubt } = await whyUnguarded(pod, world, tools.guards);
  const refusal = unguarded ?? (isAllowed(verdict) ? undefined : verdict.message);
  return [{ pod, key, zone: own?.name ?? "", isDown: down.notReady + down.unknown > 0, refusal, ...doubt }];
}

function toValue({ nodes }: Wave): unknown {
  return nodes.map((node) => ({
    node: node.name,
    zone: node.topologyZone,
    splits: splitsOf(node),
    pods: node.claims.map(({ pod, key, zone, refusal, unseen }) => ({
      namespace: pod.namespace,
      pod: pod.name,
      budget: key,
      statefulSet: zone,
      ...(refusal !== undefined && { refusal }),
      ...(unseen !== undefined && { unseen }),
    })),
  }));
}

function render(waves: readonly Wave[], { io }: Session): string {
  const rows = waves.flatMap(({ nodes }, i) => nodes.map((node) => describe(node, i + 1)));
  return formatTable(["WAVE", "NODE", "ZONE", "GUARDED-PODS", "NOW"], rows, io);
}

function describe(node: DrainNode, wave: number): Cell[] {
  const { claims, name, topologyZone } = node;
  const refusal = claims.find((one) => one.refusal !== undefined)?.refusal;
  const [split] = splitsOf(node);
  const unseen = claims.find((one) => one.unseen !== undefined)?.unseen;
  const now: Cell =
    refusal !== undefined
      ? { text: `waits: ${refusal}`, tone: "waiting" }
      : unseen !== undefined
        ? { text: `not known: ${unseen}`, tone: "waiting" }
        : { text: "yes", tone: "good" };
  const text =
    split === undefined
      ? now
      : { ...now, text: `${now.text}; has pods of several zones under ${split}: its drain waits in between` };
  return [String(wave), name, topologyZone, String(claims.length), text];
}
