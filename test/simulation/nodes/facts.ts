/**
 * Since when something has been so of nodes, their shadows and pods, in the store: what was so before a process read,
 * and still is as it acts, the process has read.
 */
import { CORDONED_BY, MANAGED_LABEL, MANAGED_VALUE } from "../../../reconciler/nodes/shadow.ts";
import { dig, isTrue, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, Store, StoreEvent } from "../../emulator/store.ts";
import { BUDGET, BUDGETS, ordinalOf, zoneOf } from "../names.ts";
import { createPast, createSince } from "../oracles/past.ts";
import { mayBeStale, type Shape } from "../shape.ts";
import { OTHER } from "./bound.ts";
import { OURS, trueConditions } from "./lifecycle.ts";
import { POLICIES, SHADOWS } from "./shape.ts";

/** A reboot of the node is wanted, and it has not come yet. */
export const REBOOTS = "RebootedIntoUpdate";

const LIST = /^\/apis\/zonewise\.dev\/v1\/nodeupdatepolicies(?:\?(?!.*\b(?:watch|continue)=)|$)/;
/** True of a path by whose list a reconciler begins a pass over the nodes. */
export const isPass = (path: string): boolean => LIST.test(path);

export const isMarked = ({ metadata }: KubeObject): boolean => metadata.annotations?.[CORDONED_BY] !== undefined;
export const nodeOf = (shadow: KubeObject): string => shadow.metadata.name.replace(/^brs-/, "");
export const wantedOf = (shadow: KubeObject | undefined): unknown => dig(shadow, "spec", "state");

/** What is not over, and is no DaemonSet's. */
export const mustLeave = (pod: KubeObject): boolean =>
  !["Succeeded", "Failed"].includes(String(dig(pod, "status", "phase"))) &&
  !pod.metadata.ownerReferences?.some(({ kind }) => kind === "DaemonSet");

const isRemoved = (node: KubeObject): boolean =>
  listOf(dig(node, "spec", "taints")).some((taint) => dig(taint, "key") !== OTHER);
const isGoing = (node: KubeObject): boolean => node.metadata.deletionTimestamp !== undefined || isRemoved(node);
const isCordoned = (node: KubeObject): boolean => dig(node, "spec", "unschedulable") === true;

const isWorkedOn = (node: KubeObject): boolean =>
  trueConditions(node).some(({ type, reason }) => type !== "MaintenancePlanned" && reason !== OURS);

/** By the kind of object: what may be so of one. */
const FACTS = {
  nodes: {
    "is there": () => true,
    "is Ready": (node) => isTrue(node, "Ready"),
    "is not Ready": (node) => !isTrue(node, "Ready"),
    "is about to be removed": isGoing,
    stays: (node) => !isGoing(node),
    "is a place": (node) => isTrue(node, "Ready") && !isCordoned(node) && !isGoing(node),
    "takes no pods": (node) => !isTrue(node, "Ready") || isCordoned(node) || isGoing(node),
    "is cordoned by us": isMarked,
    "is cordoned by somebody else": (node) => isCordoned(node) && !isMarked(node),
    "has its label": ({ metadata }) => metadata.labels?.[MANAGED_LABEL] === MANAGED_VALUE,
    "has lost its label": ({ metadata }) => metadata.labels?.[MANAGED_LABEL] !== MANAGED_VALUE,
    "is worked on by somebody else": isWorkedOn,
    "is left to us": (node) => !isWorkedOn(node),
  },
  [SHADOWS]: {
    "wants no reboot": (shadow) => wantedOf(shadow) !== REBOOTS,
    "has announced its reboot": (shadow) => Boolean(dig(shadow, "status", "rebooting")),
  },
  [POLICIES]: {
    "is there": () => true,
    "is frozen": (policy) =>
      dig(policy, "status", "frozen") !== undefined &&
      dig(policy, "spec", "unfreeze") !== dig(policy, "status", "frozen", "id"),
  },
  pods: {
    "is on its node": (pod) => dig(pod, "spec", "nodeName") !== undefined && mustLeave(pod),
    "is Ready": (pod) => isTrue(pod, "Ready"),
  },
} satisfies Readonly<Record<string, Readonly<Record<string, (object: KubeObject) => boolean>>>>;

const OF_KIND: Readonly<Record<string, Readonly<Record<string, (object: KubeObject) => boolean>>>> = FACTS;
type OfKind = { readonly [K in keyof typeof FACTS]: keyof (typeof FACTS)[K] };
export type Fact = OfKind[keyof OfKind];

export interface Facts {
  /** Takes what is stored as the history begins for what has always been so. */
  readonly begin: (store: Pick<Store, "list">) => void;
  readonly onEvent: (event: StoreEvent) => void;
  /** True if this has been so of the object, by its name or the UID of a pod, since before that time. */
  readonly wasSo: (name: string, fact: Fact, at: number) => boolean;
  /** Until when what was stored has been seen by whoever read at this time. */
  readonly seen: (at: number) => number;
  /** True if the pod of this name has been missing, or not ready, since before that time. */
  readonly wasMissing: (pod: string, at: number) => boolean;
  /** True if the node has run in another boot than this one since before that time. */
  readonly hasRebooted: (node: string, boot: string, at: number) => boolean;
  /** True if the node has been gone since before that time. */
  readonly wasGone: (node: string, at: number) => boolean;
  /** True if the node has had no shadow since before that time. */
  readonly hadNoShadow: (node: string, at: number) => boolean;
  /** True if the budget could be asked since before that time. */
  readonly wasGuarded: (at: number) => boolean;
  /** The pods that may be missing by the budget, if it has said so since before that time. */
  readonly budgetAt: (at: number) => number;
}

export function createFacts(shape: Shape, now: () => number): Facts {
  const { zones, replicas, budget } = shape;
  const since = createSince(now);
  const boots = new Map<string, { readonly id: string; readonly since: number }>();
  const past = createPast(now, mayBeStale(shape));
  const sizes = new Map(zones.map((zone) => [zone, replicas]));
  let allowed = { pods: budget ?? Infinity, since: -Infinity };
  let guardedSince = budget === undefined ? Infinity : -Infinity;

  function noteFacts({ type, resource, object }: StoreEvent, at?: number): void {
    const { name, uid } = object.metadata;
    const key = resource === "pods" ? uid : resource === SHADOWS ? nodeOf(object) : name;
    for (const [fact, holds] of Object.entries<(object: KubeObject) => boolean>(OF_KIND[resource] ?? {}))
      since.note(`${key} ${fact}`, type !== "DELETED" && holds(object), at);
  }

  function noteBoot(node: string, id: string): void {
    if (id !== "" && boots.get(node)?.id !== id) boots.set(node, { id, since: now() });
  }

  function onZone({ type, object }: StoreEvent): void {
    const { name } = object.metadata;
    const size = type === "DELETED" ? 0 : Number(dig(object, "spec", "replicas") ?? 1);
    sizes.set(name, size);
    for (const key of since.all.keys()) {
      const [pod = "", fact] = key.split(" ");
      if (fact === "missing" && zoneOf(pod) === name && ordinalOf(pod) >= size) since.note(key, false);
    }
  }

  function onBudget({ type, object }: StoreEvent): void {
    if (object.metadata.name !== BUDGET) return;
    const pods = Number(dig(object, "spec", "maxUnavailable") ?? Infinity);
    if (pods !== allowed.pods) allowed = { pods, since: now() };
    const isValid = type !== "DELETED" && dig(object, "spec", "podNamePartitionRegex") !== "([";
    guardedSince = isValid ? Math.min(guardedSince, now()) : Infinity;
  }

  const isWanted = (pod: string): boolean => ordinalOf(pod) < (sizes.get(zoneOf(pod)) ?? 0);

  return {
    begin(store) {
      for (const resource of Object.keys(FACTS))
        for (const object of store.list(resource)) noteFacts({ type: "ADDED", resource, object }, -Infinity);
    },
    onEvent(event) {
      past.noteWrite();
      const { type, resource, object } = event;
      const { name } = object.metadata;
      noteFacts(event);
      if (resource === SHADOWS) since.note(`${nodeOf(object)} shadow`, type === "DELETED");
      if (resource === "nodes") since.note(`${name} gone`, type === "DELETED");
      if (resource === "nodes") noteBoot(name, textOf(dig(object, "status", "nodeInfo", "bootID")) ?? "");
      if (resource === "pods")
        since.note(`${name} missing`, isWanted(name) && (type === "DELETED" || !isTrue(object, "Ready")));
      if (resource === "statefulsets.apps" && zones.includes(name)) onZone(event);
      if (resource === BUDGETS) onBudget(event);
    },
    wasSo: (name, fact, at) => since.before(`${name} ${fact}`, at),
    seen: past.seenAt,
    hasRebooted: (node, boot, at) => {
      const { id = boot, since: bootedAt = Infinity } = boots.get(node) ?? {};
      return id !== boot && bootedAt < at;
    },
    wasGone: (node, at) => since.before(`${node} gone`, at),
    hadNoShadow: (node, at) => since.before(`${node} shadow`, at),
    wasMissing: (pod, at) => since.before(`${pod} missing`, at),
    wasGuarded: (at) => guardedSince < at,
    budgetAt: (at) => (allowed.since < at ? allowed.pods : Infinity),
  };
}
