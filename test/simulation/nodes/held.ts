/** Why a node must not be drained now, or start to come to that, by what was so before a pass began (§17.3, §17.12). */
import { dig } from "../../emulator/objects.ts";
import type { KubeObject, Store } from "../../emulator/store.ts";
import { NAMESPACE, zoneOf } from "../names.ts";
import type { Shape } from "../shape.ts";
import { type Fact, type Facts, mustLeave } from "./facts.ts";
import type { Entry } from "./policies.ts";
import { ZONE_LABEL } from "./shape.ts";

export interface HeldOptions {
  readonly shape: Pick<Shape, "partitioned" | "nodes" | "zones">;
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

/** Returns a function that says why, in words; undefined if nothing is known that keeps the node. */
export function createHeld({ shape, facts, store }: HeldOptions) {
  const kept: readonly Fact[] = [
    "is not Ready",
    "is about to be removed",
    ...(shape.nodes?.lifecycle ? ([WORKED_ON] as const) : []),
  ];
  const zoneOfNode = (name: string): unknown => store().get("nodes", undefined, name)?.metadata.labels?.[ZONE_LABEL];

  /** Pods that have to leave the node, and had to as the pass began. */
  const podsOn = (node: string, at: number): readonly string[] =>
    store()
      .list("pods", NAMESPACE)
      .filter((pod) => dig(pod, "spec", "nodeName") === node && mustLeave(pod))
      .filter(
        ({ metadata: { uid, deletionTimestamp } }) => !deletionTimestamp && facts.wasSo(uid, "is on its node", at),
      )
      .map(({ metadata }) => metadata.name);

  /** A pod of another zone for which the budget lets none of this zone go; those of the node come up elsewhere. */
  function findMissing(own: string, node: string, at: number): string | undefined {
    if (shape.partitioned || !facts.wasGuarded(at)) return undefined;
    const replicasOf = (zone: string): number =>
      Number(dig(store().get("statefulsets.apps", NAMESPACE, zone), "spec", "replicas") ?? 0);
    return shape.zones
      .filter((zone) => zone !== own)
      .flatMap((zone) => Array.from({ length: replicasOf(zone) }, (_, i) => `${zone}-${i}`))
      .filter((pod) => facts.wasMissing(pod, at))
      .find((pod) => dig(store().get("pods", NAMESPACE, pod), "spec", "nodeName") !== node);
  }

  return ({ node, at, active, isStart }: Question): string | undefined => {
    const fact = kept.find((one) => facts.wasSo(node, one, at));
    if (fact !== undefined) return `it ${fact}`;
    const pods = podsOn(node, at);
    if (pods.length === 0) return undefined;
    const others = store()
      .list("nodes")
      .map(({ metadata }: KubeObject) => metadata.name)
      .filter((name) => name !== node);
    const isClosed = (name: string): boolean => facts.wasSo(name, "takes no pods", at);
    if (others.every(isClosed)) return `no other node takes ${pods[0]}`;
    const ofGroup = pods.find((name) => shape.zones.includes(zoneOf(name)));
    if (ofGroup === undefined) return undefined;
    const going = new Set(active.filter(({ phase }) => (isStart ? GOING : OUT).has(phase)).map((one) => one.node));
    const ofZone = others.filter((name) => zoneOfNode(name) === zoneOfNode(node));
    // A pod that fits on no other node comes back to its own.
    const fits = ofZone.some((name) => facts.wasSo(name, "stays", at));
    if (fits && ofZone.every((name) => isClosed(name) || going.has(name))) return `${ofGroup} has no other place`;
    const missing = findMissing(zoneOf(ofGroup), node, at);
    return missing === undefined ? undefined : `the budget keeps ${ofGroup} on it, as ${missing} is missing`;
  };
}
