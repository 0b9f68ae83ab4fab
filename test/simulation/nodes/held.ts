/** Why a node must not be drained now, or start to come to that, by what was so before a pass began (§17.3, §17.12). */
import { dig } from "../../emulator/objects.ts";
import type { KubeObject, Store } from "../../emulator/store.ts";
import { NAMESPACE, zoneOf } from "../names.ts";
import type { Shape } from "../shape.ts";
import { fittingIn, POOL } from "./bound.ts";
import { NODE_API } from "./node-api-pod.ts";
import { type Fact, type Facts, mustLeave } from "./facts.ts";
import type { Entry } from "./policies.ts";
import { ZONE_LABEL } from "./shape.ts";

export interface HeldOptions {
  readonly shape: Pick<Shape, "partitioned" | "nodes" | "zones" | "skewMs">;
  readonly facts: Facts;
  readonly store: () => Pick<Store, "get" | "list">;
}

export interface Question {
  readonly node: string;
  /** What was so before has been read. */
  readonly at: number;
  /** Nodes with slots. */
  readonly active: readonly Entry[];
  readonly isStart: boolean;
}

export const WORKED_ON = "is worked on by somebody else";
/** Of a node whose pods have not all left, or that reboots; and of one that comes to that. */
const OUT: ReadonlySet<string> = new Set(["Draining", "Rebooting"]);
const GOING: ReadonlySet<string> = new Set(["Starting", "Staging", "Holding", ...OUT]);

/** For which what was read of nodes that are being drained may be used. */
const REMEMBERED_MS = 60_000;
const isRebooting = (active: readonly Entry[], name: string): boolean =>
  active.some(({ node, phase }) => node === name && phase === "Rebooting");

/** `whyHeld` says why, in words; undefined if nothing is known that keeps the node. */
export function createHeld({ shape, facts, store }: HeldOptions) {
  const kept: readonly Fact[] = [
    "is not Ready",
    "is about to be removed",
    ...(shape.nodes?.lifecycle ? ([WORKED_ON] as const) : []),
  ];
  /** On how many nodes of a zone its pods fit. */
  const roomIn = (zone: unknown): number => (shape.nodes ? fittingIn(String(zone), shape.nodes) : Infinity);
  const isAlone = (node: string): boolean => roomIn(zoneOfNode(node)) === 1;
  const zoneOfNode = (name: string): unknown => store().get("nodes", undefined, name)?.metadata.labels?.[ZONE_LABEL];

  /** True of another node of its zone on which the pods of the zone can run. */
  const isLike = (name: string, node: string): boolean =>
    name !== node && zoneOfNode(name) === zoneOfNode(node) && (!shape.nodes?.bound || isInPool(name));
  const isInPool = (name: string): boolean => store().get("nodes", undefined, name)?.metadata.labels?.[POOL] === "true";

  /** Pods that have to leave the node, and had to as the pass began. */
  const podsOn = (node: string, at: number): readonly string[] =>
    store()
      .list("pods", NAMESPACE)
      .filter((pod) => dig(pod, "spec", "nodeName") === node && mustLeave(pod))
      .filter(
        ({ metadata: { uid, deletionTimestamp } }) => !deletionTimestamp && facts.wasSo(uid, "is on its node", at),
      )
      .map(({ metadata }) => metadata.name);

  const replicasOf = (zone: string): number =>
    Number(dig(store().get("statefulsets.apps", NAMESPACE, zone), "spec", "replicas") ?? 0);

  /** A pod of another zone for which the budget lets none of this zone go; those of the node come up elsewhere. */
  function findMissing(own: string, node: string, at: number): string | undefined {
    if (shape.partitioned || !facts.wasGuarded(at)) return undefined;
    return shape.zones
      .filter((zone) => zone !== own)
      .flatMap((zone) => Array.from({ length: replicasOf(zone) }, (_, i) => `${zone}-${i}`))
      .filter((pod) => facts.wasMissing(pod, at))
      .find((pod) => dig(store().get("pods", NAMESPACE, pod), "spec", "nodeName") !== node);
  }

  /** Other nodes of its zone on which the pods of the zone can run, whatever their state. */
  const likeIt = (node: string): readonly string[] =>
    store()
      .list("nodes")
      .map(({ metadata }) => metadata.name)
      .filter((name) => isLike(name, node));

  const groupOn = (node: string, at: number): readonly string[] =>
    podsOn(node, at).filter((pod) => shape.zones.includes(zoneOf(pod)));

  /** Pods that come back to their node alone are missing together: the budget keeps those that go last. */
  function whyEndless(node: string, at: number): string | undefined {
    if (shape.partitioned || shape.nodes?.drain.onTimeout === "Reboot" || !facts.wasGuarded(at)) return undefined;
    const pods = groupOn(node, at);
    const areReady = pods.every((name) =>
      facts.wasSo(store().get("pods", NAMESPACE, name)?.metadata.uid ?? "", "is Ready", at),
    );
    return isAlone(node) && areReady && pods.length > facts.budgetAt(at)
      ? `${pods.join(", ")} come back to it alone, and the budget allows ${facts.budgetAt(at)}`
      : undefined;
  }

  /** Nodes beside it that are being drained, or come to it, each with a pod of the group. */
  function leavingBeside({ node, at, active, isStart }: Question) {
    const out = new Set(active.filter(({ phase }) => (isStart ? GOING : OUT).has(phase)).map((one) => one.node));
    const leaving = [...out].filter((name) => name !== node && !isRebooting(active, name));
    return leaving.flatMap((other) => {
      const [pod] = groupOn(other, at - REMEMBERED_MS);
      return pod === undefined ? [] : [{ other, pod, out }];
    });
  }

  /** It takes the last place of a pod of another node. */
  function whyPlace(question: Question): string | undefined {
    const { node, at } = question;
    const before = at - REMEMBERED_MS;
    if (!facts.wasSo(node, "is a place", before)) return undefined;
    const found = leavingBeside(question).find(({ other, out }) => {
      const places = likeIt(other);
      const areAll = places.length + 1 === roomIn(zoneOfNode(other)) && places.includes(node);
      return areAll && places.every((one) => one === node || out.has(one) || facts.wasSo(one, "takes no pods", before));
    });
    return found && `${found.pod} of ${found.other} has no place but on it`;
  }

  /** True if each pod of the zones has been ready since before. */
  const areWhole = (at: number): boolean =>
    shape.zones.every((zone) =>
      Array.from({ length: replicasOf(zone) }, (_, i) => store().get("pods", NAMESPACE, `${zone}-${i}`)).every(
        (pod) => pod && facts.wasSo(pod.metadata.uid, "is Ready", at),
      ),
    );

  /**
   * Its pods, or those of another node, come back to their node alone: those of the other zone wait for them. If only
   * one of both pods does, the other one may be kept by a third that is missing.
   */
  function whyWait(question: Question): string | undefined {
    const { node, at } = question;
    const before = at - REMEMBERED_MS;
    const [own] = groupOn(node, at);
    if (shape.partitioned || own === undefined || !facts.wasGuarded(before)) return undefined;
    const found = leavingBeside(question).find(
      ({ pod, other }) =>
        zoneOf(pod) !== zoneOf(own) &&
        (isAlone(node) || isAlone(other)) &&
        ((isAlone(node) && isAlone(other)) || areWhole(before)),
    );
    return found && `${own} and ${found.pod} of ${found.other} would wait for each other's node`;
  }

  /** A node beside it that takes the pods of its zone, and does not leave service. */
  function findPlace({ node, at, active }: Omit<Question, "isStart">): string | undefined {
    const out = new Set(active.filter(({ phase }) => OUT.has(phase)).map((one) => one.node));
    return likeIt(node).find((name) => !out.has(name) && facts.wasSo(name, "is a place", at));
  }

  function whyHeld({ node, at, active, isStart }: Question): string | undefined {
    const fact = kept.find((one) => facts.wasSo(node, one, at));
    if (fact !== undefined) return `it ${fact}`;
    const taken = whyPlace({ node, at, active, isStart });
    if (taken !== undefined) return taken;
    const pods = podsOn(node, at);
    if (pods.length === 0) return undefined;
    const others = store()
      .list("nodes")
      .map(({ metadata }: KubeObject) => metadata.name)
      .filter((name) => name !== node);
    const isClosed = (name: string): boolean => facts.wasSo(name, "takes no pods", at);
    if (others.every(isClosed)) return `no other node takes ${pods[0]}`;
    const isApis = isAlone(node) && pods.includes(NODE_API);
    if (isApis) return "the only pod of the node API would come back to it alone";
    const ofGroup = pods.find((name) => shape.zones.includes(zoneOf(name)));
    if (ofGroup === undefined) return undefined;
    const going = new Set(active.filter(({ phase }) => (isStart ? GOING : OUT).has(phase)).map((one) => one.node));
    const ofZone = others.filter((name) => isLike(name, node));
    // A pod that fits on no other node comes back to its own.
    const fits = ofZone.some((name) => facts.wasSo(name, "stays", at));
    if (fits && ofZone.every((name) => isClosed(name) || going.has(name))) return `${ofGroup} has no other place`;
    if (isAlone(node) && facts.wasSo(node, "is cordoned by somebody else", at))
      return `${ofGroup} fits on no other node, and could not come back to this one`;
    const missing = findMissing(zoneOf(ofGroup), node, at);
    if (missing !== undefined) return `the budget keeps ${ofGroup} on it, as ${missing} is missing`;
    return whyEndless(node, at) ?? whyWait({ node, at, active, isStart });
  }

  return { whyHeld, findPlace };
}
