/**
 * Judges whether a node can be drained beside those that are being updated, so that each of these drains ends
 * (§17.12):
 *
 *   1. each pod that fits on another node has one that takes pods and is not being updated; one that fits on none can
 *      come back to its own
 *   2. no pod waits for the successor of one that can come back to its own node alone: that node comes back once its drain has ended
 *   3. the same holds for the nodes that are being drained already: a start takes no place that they need
 */
import { firstOf, type Rule } from "../../infra/rules.ts";
import { listSome } from "../model/list-some.ts";
import { captivesOf, type DrainFacts, findWaiting, nameOf } from "./drainable.ts";
import { needsPlace, type NodePod } from "./node-pod.ts";
import type { GoingNode, NodeReading, PolicySnapshot, Skip } from "./snapshot.ts";
import { type Phase, PHASES } from "./state-machine.ts";

/** Nodes that are being updated, or are about to. */
export interface Going {
  /** Out of service sooner or later: none of them is a place for pods. */
  readonly out: ReadonlySet<string>;
  /** Those of them whose pods have not all left. */
  readonly leaving: readonly string[];
}

/**
 * For a start: all active nodes count that have not come back from their reboot. The state of a node that has come
 * back shows whether it takes pods.
 */
export function goingBeforeStart(active: readonly GoingNode[]): Going {
  return goingOf(active, ["ahead", "draining"]);
}

/** For a reboot: nodes that wait for their own reboot do not count, as they would wait for each other. */
export function goingBeforeReboot(active: readonly GoingNode[]): Going {
  return goingOf(active, ["draining"]);
}

function goingOf(active: readonly GoingNode[], until: readonly Phase["disruption"][]): Going {
  const nodesIn = (disruptions: readonly Phase["disruption"][]): string[] =>
    active.filter(({ phase }) => disruptions.includes(PHASES[phase].disruption)).map(({ node }) => node);
  const leaving = nodesIn(until);
  return { out: new Set([...leaving, ...nodesIn(["rebooting"])]), leaving };
}

export const withNode = ({ out, leaving }: Going, node: string): Going => ({
  out: new Set([...out, node]),
  leaving: [...leaving, node],
});

export interface DrainQuestion {
  readonly node: string;
  /** Nodes beside this one. */
  readonly going: Going;
  readonly readings: ReadonlyMap<string, NodeReading>;
  /** The policy says that the reboot ends a drain that does not end by itself. */
  readonly isForced: boolean;
}

/** The question as far as the snapshot has read. */
export function questionOf(
  node: string,
  going: Going,
  { readings, departures = new Map(), policy }: PolicySnapshot,
): DrainQuestion {
  return {
    node,
    going,
    readings: new Map([...departures, ...readings]),
    isForced: policy.drain.onTimeout === "Reboot",
  };
}

/** The reason why the node cannot be drained, or the nodes whose pods must be read first; undefined if it can be. */
export type DrainAnswer = Omit<Skip, "node"> | { readonly toRead: readonly string[] } | undefined;

export function whyNotTogether(question: DrainQuestion): DrainAnswer {
  const { node, going, readings } = question;
  const facts = readings.get(node)?.drain;
  if (!facts) return undefined;
  const own = judgeAlone({ ...question, facts });
  if (own) return own;
  const others = going.leaving.filter((name) => name !== node);
  const unknown = others.filter((name) => !readings.has(name));
  if (unknown.length > 0) return { toRead: unknown };
  const drains = others.flatMap((name) => {
    const drain = readings.get(name)?.drain;
    return drain ? [{ node: name, facts: drain }] : [];
  });
  return judgeTogether({ ...question, facts, drains });
}

interface Alone extends DrainQuestion {
  readonly facts: DrainFacts;
}

interface Drain {
  readonly node: string;
  readonly facts: DrainFacts;
}

interface Together extends Alone {
  readonly drains: readonly Drain[];
}

/** The label on the pods of node updates, the same as the original's. */
const COMPONENT_LABEL = "brupop.bottlerocket.aws/component";
const NODE_API = "apiserver";

const noPlace = (message: string): Omit<Skip, "node"> => ({ reason: "NoPlaceForPods", message });

const hasPlaces: Rule<[Alone], Omit<Skip, "node">> = ({ facts, node, going }) => {
  const after = withNode(going, node);
  const pods = facts.pods.filter((pod) => isHomeless(facts, pod, after));
  const [pod] = pods;
  if (!pod) return undefined;
  const why = noPlace(`${nameOf(pod)} of ${node} has no place: ${describePlaces(facts, pod, going)}`);
  return { ...why, fits: pods.map((one) => fitsOf(facts, one)) };
};

/** A pod that fits on no other node comes back to its own, if that takes it. */
const comesBack: Rule<[Alone], Omit<Skip, "node">> = ({ facts, node }) => {
  for (const pod of captivesOf(facts)) {
    const { why, back } = facts.places?.get(pod.uid) ?? {};
    if (back === undefined) continue;
    const message = `${nameOf(pod)} could come back to ${node} alone (${why}), which would not take it: ${back}`;
    return { ...noPlace(message), fits: [[]] };
  }
  return undefined;
};

const drainEnds: Rule<[Alone], Omit<Skip, "node">> = ({ facts, node, isForced }) => {
  const captives = captivesOf(facts);
  const found = isForced ? undefined : findWaiting(facts, { more: captives });
  const captive = captives.find(({ uid }) => uid !== found?.pod.uid);
  if (!found || !captive) return undefined;
  const why = `${nameOf(captive)} could come back to ${node} alone (${facts.places?.get(captive.uid)?.why})`;
  return { reason: "DrainWouldNotEnd", message: `${why}, and ${nameOf(found.pod)} would wait for it: ${found.why}` };
};

const isOfNodeApi = ({ labels }: NodePod): boolean => labels[COMPONENT_LABEL] === NODE_API;

/**
 * Without the node API nothing announces the reboot, and nothing gives the node back. A pod of the API that its budget
 * keeps on the node announces a forced reboot, and comes back with the node.
 */
const nodeApiStays: Rule<[Alone], Omit<Skip, "node">> = ({ facts, node, readings, isForced }) => {
  const captives = captivesOf(facts).filter(isOfNodeApi);
  const [pod] = captives;
  const ready = readings.get(node)?.workloads.find(({ uid }) => uid === pod?.owner)?.ready ?? 0;
  if (!pod || ready > captives.length || (isForced && keepsOne(captives, facts))) return undefined;
  return {
    reason: "DrainWouldNotEnd",
    message: `${nameOf(pod)} of the node API could come back to ${node} alone (${facts.places?.get(pod.uid)?.why}), and no other pod of it is ready`,
  };
};

/** True if the budget of these pods of the node API keeps one of them. */
function keepsOne(captives: readonly NodePod[], facts: DrainFacts): boolean {
  const found = findWaiting(facts, { more: captives });
  return found !== undefined && isOfNodeApi(found.pod);
}

const judgeAlone = firstOf<[Alone], Omit<Skip, "node">>([hasPlaces, comesBack, nodeApiStays, drainEnds]);

/** The reason that would keep a pod of the node until another node is back. */
const waitsForNoOther: Rule<[Together], Omit<Skip, "node">> = ({ facts, node, drains, isForced }) => {
  for (const other of drains) {
    const captives = captivesOf(other.facts);
    const found = findWaiting(facts, { before: isForced ? [] : captivesOf(facts), more: captives });
    if (found)
      return noPlace(
        `${nameOf(found.pod)} of ${node} would wait for ${captives.map(nameOf)[0]}, which could come back to ${other.node} alone, and that is being updated`,
      );
  }
  return undefined;
};

const takesNoPlace: Rule<[Together], Omit<Skip, "node">> = ({ node, going, drains }) => {
  for (const { node: other, facts } of drains) {
    const before = withNode(going, other);
    const after = withNode(before, node);
    // Pod by pod: another one may have no place in any case.
    const found = facts.pods.find((pod) => isHomeless(facts, pod, after) && !isHomeless(facts, pod, before));
    if (found) return noPlace(`${nameOf(found)} of ${other}, which is being updated, has no place but on ${node}`);
  }
  return undefined;
};

const letsNoOtherWait: Rule<[Together], Omit<Skip, "node">> = ({ facts, node, drains }) => {
  const captives = captivesOf(facts);
  for (const { node: other, facts: theirs } of drains) {
    const found = findWaiting(theirs, { before: captivesOf(theirs), more: captives });
    if (found)
      return noPlace(
        `${nameOf(found.pod)} of ${other}, which is being updated, would wait for ${captives.map(nameOf)[0]} of ${node}`,
      );
  }
  return undefined;
};

const judgeTogether = firstOf<[Together], Omit<Skip, "node">>([takesNoPlace, waitsForNoOther, letsNoOtherWait]);

/** True if the pod fits on another node, and on none that takes pods and stays. */
function isHomeless({ places }: DrainFacts, pod: NodePod, { out }: Going): boolean {
  const found = needsPlace(pod) ? places?.get(pod.uid) : undefined;
  return found !== undefined && found.open.length + found.closed.size > 0 && found.open.every((name) => out.has(name));
}

/** The other nodes that the pod fits on, whatever their state. */
function fitsOf({ places }: DrainFacts, { uid }: NodePod): readonly string[] {
  const { open = [], closed = new Map<string, string>() } = places?.get(uid) ?? {};
  return [...open, ...closed.keys()];
}

/** Nodes that a message names. */
const MAX_NODES = 3;

function describePlaces({ places }: DrainFacts, { uid }: NodePod, { out }: Going): string {
  const { open = [], closed = new Map<string, string>() } = places?.get(uid) ?? {};
  const states = [...open, ...closed.keys()].map(
    (name) => `${name} (${out.has(name) ? "being updated" : closed.get(name)})`,
  );
  return `it fits on ${listSome(states, ", ", MAX_NODES)} alone`;
}
