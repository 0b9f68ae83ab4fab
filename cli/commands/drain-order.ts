/**
 * `zonewise drain-order`: the order in which to drain nodes, and the nodes that may be drained together. It cordons and
 * evicts nothing.
 */
import { absent } from "../../infra/errors.ts";
import { nodes, pods } from "../../infra/kubernetes/resources.ts";
import { readPod, type Pod } from "../../reconciler/model/pod.ts";
import type { ZoneWithPods } from "../../reconciler/model/zone.ts";
import type { Guard } from "../../reconciler/budget/guard.ts";
import { isAllowed, VERDICTS, type Verdict } from "../../reconciler/budget/verdict.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { isDegraded, whyOthersComeFirst, zonesIn } from "../decide/unbudgeted.ts";
import { orderDrains, splitsOf, type Claim, type DrainNode, type Wave } from "../decide/waves.ts";
import { countUnavailable, type EvictionSnapshot } from "../../reconciler/budget/decide-eviction.ts";
import { EXIT } from "../exit.ts";
import { createPodViews, type PodView } from "../gather/world.ts";
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
  asksTicking: true,
  async run(session, { args }) {
    const viewPod = createPodViews(session);
    const gathered = await Promise.all([...new Set(args)].map((name) => gatherNode(session, name, viewPod)));
    const waves = orderDrains(gathered);
    // A node has pods of any namespace.
    const places = gathered.flatMap((node) => node.claims.map(({ pod }) => pod.namespace));
    const noTicks = await gatherTicking(session, [...new Set(places)]);
    print({ ...session, noTicks }, waves.map(toValue), () => render(waves, session));
    const claims = waves[0]?.nodes.flatMap((node) => node.claims) ?? [];
    if (waves.some(({ nodes }) => nodes.some((node) => node.claims.some((one) => one.isLasting)))) return EXIT.no;
    if (claims.some(({ refusal, unguarded }) => refusal !== undefined || unguarded !== undefined)) return EXIT.no;
    return claims.some(({ unseen }) => unseen !== undefined) ? EXIT.unknown : EXIT.ok;
  },
};

async function gatherNode(
  session: Session,
  name: string,
  viewPod: ReturnType<typeof createPodViews>,
): Promise<DrainNode> {
  const node = await session.cluster.get(nodes, { name }).catch(absent);
  if (!node) throw await missing(session, { what: "nodes", name, message: `no node ${JSON.stringify(name)}` });
  // In all namespaces: a drain evicts all pods.
  const query = { fieldSelector: `spec.nodeName=${name}` };
  const { items } = await readAll({ resource: pods, query, read: readPod }, session);
  const claims = await Promise.all(items.filter(isOfZone).map(async (pod) => claim(await viewPod(pod))));
  return { name, topologyZone: node.metadata?.labels?.[TOPOLOGY] ?? "", claims: claims.flat() };
}

/** Why no webhook asks the budget, why the webhook refuses every eviction, or why neither could be seen. */
function describeGuard(guard: Guard | undefined): Pick<Claim, "unseen" | "unguarded"> & { readonly refusal?: string } {
  if (!guard || guard.reason === "Guarded") return {};
  const { reason, message } = guard;
  if (reason === "NotSeen") return { unseen: message };
  return reason === "NoWebhook" ? { unguarded: message } : { refusal: message };
}

/** Empty for a pod under no budget and in no group. */
function claim(view: PodView): Claim[] {
  const { pod, group, verdict, snapshot } = view;
  const key = group === undefined ? undefined : `${pod.namespace}/${group}`;
  const zone = pod.madeBy ?? pod.controller?.name ?? "";
  if (snapshot) return [{ pod, zone, group: key, ...claimOfBudget(view, snapshot) }];
  const own = { pod, zone, group: key, budget: undefined, isDown: isDegraded(zoneOf(pod, zonesIn(view.world))) };
  // Several budgets select it, or one that is not valid: every eviction of it is refused.
  if (verdict.reason !== "PodNotInScope") return [{ ...own, refusal: verdict.message, isLasting: isLasting(verdict) }];
  return group === undefined ? [] : [{ ...own, ...claimOfGroup(view) }];
}

function claimOfBudget({ pod, verdict, guard }: PodView, snapshot: EvictionSnapshot) {
  const { budget } = snapshot;
  const partition = budget.partitionOf?.(pod.name);
  return {
    budget: `${budget.namespace}/${budget.name}`,
    partition,
    isDown: isZoneDown(pod, snapshot, partition),
    isLasting: isLasting(verdict),
    refusal: isAllowed(verdict) ? undefined : verdict.message,
    ...describeGuard(guard),
  };
}

function claimOfGroup({ pod, world, guard, unbudgeted }: PodView): Pick<Claim, "refusal" | "unguarded"> {
  const { refusal = whyOthersComeFirst(pod, world) } = describeGuard(guard);
  const unguarded = unbudgeted && `${unbudgeted.message}; zonewise -n ${pod.namespace} doctor proposes a budget`;
  return { refusal, unguarded };
}

function isZoneDown(pod: Pod, snapshot: EvictionSnapshot, partition: string | undefined): boolean {
  const own = zoneOf(pod, snapshot.zones);
  const { notReady, unknown } = own ? countUnavailable(own, snapshot, partition) : { notReady: 0, unknown: 0 };
  return notReady + unknown > 0;
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
