/**
 * Finds the nodes on which a pod could run, by the rules of the scheduler that bind the pods of StatefulSets (§17.12).
 * The rules that are left out, and the reasons: docs/node-updates/reference.md.
 */
import { firstOf, type Rule } from "../../infra/rules.ts";
import type { UpdateNode } from "./node.ts";
import { describeTerms, matchesTerms, type NodeTerm } from "./node-selector.ts";
import type { PodNeeds } from "./pod-needs.ts";
import { describeTaint, isOfState, isTolerated } from "./taints.ts";

/** A claim of the pod, with the requirements of its volume on nodes. */
export interface BoundClaim {
  readonly name: string;
  /** Undefined if the volume can be reached from every node. */
  readonly terms?: readonly NodeTerm[];
  /** The claim or its volume is gone: the pod can run nowhere. */
  readonly missing?: true;
}

/** The domains of pods that the pod must not run beside. */
export interface TakenDomain {
  readonly topologyKey: string;
  /** Values of that label. */
  readonly values: readonly string[];
}

/** The demands of a pod, with those of its claims and its peers as they are now. */
export interface Demands extends Pick<PodNeeds, "nodeSelector" | "terms" | "tolerations" | "requests"> {
  readonly claims: readonly BoundClaim[];
  readonly taken: readonly TakenDomain[];
}

/** The places where a pod could run, other than its own node. */
export interface Places {
  /** The nodes that meet its demands and take pods now. */
  readonly open: readonly string[];
  /** The nodes that meet its demands and take no pods now, each with its state. */
  readonly closed: ReadonlyMap<string, string>;
  /** The demands that the other nodes do not meet, most frequent first; only if none meets all. */
  readonly why: string;
  /** If none does: the reason why its own node would not take it back after the reboot. Absent if it would. */
  readonly back?: string;
}

/** Names the demand that the node does not meet. */
type PlaceRule = Rule<[Demands, UpdateNode], string>;

const hasLabels: PlaceRule = ({ nodeSelector }, { labels }) => {
  const missing = Object.entries(nodeSelector).find(([key, value]) => labels[key] !== value);
  return missing && `not ${missing.join("=")}`;
};

const matchesAffinity: PlaceRule = ({ terms }, node) =>
  terms === undefined || matchesTerms(terms, node) ? undefined : `not ${describeTerms(terms)}`;

const toleratesTaints: PlaceRule = ({ tolerations }, { taints }) => {
  const taint = taints.find((one) => !isOfState(one) && !isTolerated(one, tolerations));
  return taint && `taint ${describeTaint(taint)}`;
};

const reachesVolumes: PlaceRule = ({ claims }, node) => {
  const out = claims.find(
    ({ terms, missing }) => missing === true || (terms !== undefined && !matchesTerms(terms, node)),
  );
  if (!out) return undefined;
  return out.terms ? `claim ${out.name} is bound to ${describeTerms(out.terms)}` : `claim ${out.name} is gone`;
};

const isApart: PlaceRule = ({ taken }, { labels }) => {
  const found = taken.find(({ topologyKey, values }) => values.includes(labels[topologyKey] ?? ""));
  return found && `a pod there that it must not be beside, by ${found.topologyKey}`;
};

const isLargeEnough: PlaceRule = ({ requests }, { allocatable }) => {
  const short = allocatable && Object.entries(requests).find(([name, amount]) => amount > (allocatable[name] ?? 0));
  return short && `never room for its ${short[0]}`;
};

const whyUnfitFor = firstOf<[Demands, UpdateNode], string>([
  hasLabels,
  matchesAffinity,
  toleratesTaints,
  reachesVolumes,
  isApart,
  isLargeEnough,
]);

/** A node, and the demand of a pod that it does not meet; undefined if it meets all. */
export type Judged = readonly [node: UpdateNode, lacks: string | undefined];

/** Judges the nodes that are not being deleted or removed. */
export function judgeNodes(demands: Demands, nodes: readonly UpdateNode[]): Judged[] {
  return nodes.filter(staysThere).map((node) => [node, whyUnfitFor(demands, node)]);
}

const staysThere = ({ terminating, removedBy }: UpdateNode): boolean => !terminating && removedBy === undefined;

/** Why the node takes no pods now; undefined if it does. */
export function whyNotOpen({ ready, unschedulable }: UpdateNode): string | undefined {
  if (!ready) return "not Ready";
  return unschedulable ? "cordoned" : undefined;
}

/** The places of a pod that is on node `own`. */
export function findPlaces(judged: readonly Judged[], own: string): Places {
  const others = judged.filter(([{ name }]) => name !== own);
  const back = fittingBack(judged.find(([{ name }]) => name === own));
  const fitting = others.flatMap(([node, lacks]) => (lacks === undefined ? [node] : []));
  const states = fitting.map((node) => [node.name, whyNotOpen(node)] as const);
  return {
    open: states.flatMap(([name, state]) => (state === undefined ? [name] : [])),
    closed: new Map(states.flatMap(([name, state]) => (state === undefined ? [] : [[name, state] as const]))),
    why: fitting.length > 0 ? "" : explain(others),
    ...(fitting.length === 0 && back !== undefined && { back }),
  };
}

/** Our own cordon ends with the update; a cordon of somebody else may never end. */
function fittingBack(judged: Judged | undefined): string | undefined {
  if (!judged) return undefined;
  const [{ unschedulable, cordonedBy }, lacks] = judged;
  return lacks ?? (unschedulable && cordonedBy === undefined ? "somebody else has cordoned it" : undefined);
}

/** Reasons that a message names. */
const MAX_REASONS = 3;

function explain(others: readonly Judged[]): string {
  if (others.length === 0) return "there is no other node";
  const counts = new Map<string, number>();
  for (const [, lacks = ""] of others) counts.set(lacks, (counts.get(lacks) ?? 0) + 1);
  const ordered = [...counts].toSorted(([, a], [, b]) => b - a);
  const named = ordered.slice(0, MAX_REASONS).map(([reason, count]) => `${count} ${reason}`);
  return `of ${others.length} other ${others.length === 1 ? "node" : "nodes"}: ${named.join(", ")}`;
}
