/**
 * Since when something has been so of nodes, their shadows and pods, in the store: what was so before a process read,
 * and still is as it acts, the process has read.
 */
import { CORDONED_BY } from "../../../reconciler/nodes/shadow.ts";
import { dig } from "../../emulator/objects.ts";
import type { KubeObject, Store, StoreEvent } from "../../emulator/store.ts";
import { createSince } from "../oracles/past.ts";
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

/** By the kind of object: what may be so of one. */
const FACTS = {
  nodes: {
    "is there": () => true,
    "is cordoned by us": isMarked,
  },
  [SHADOWS]: {
    "wants no reboot": (shadow) => wantedOf(shadow) !== REBOOTS,
    "has announced its reboot": (shadow) => Boolean(dig(shadow, "status", "rebooting")),
  },
  [POLICIES]: {
    "is frozen": (policy) =>
      dig(policy, "status", "frozen") !== undefined &&
      dig(policy, "spec", "unfreeze") !== dig(policy, "status", "frozen", "id"),
  },
  pods: {
    "is on its node": (pod) => dig(pod, "spec", "nodeName") !== undefined && mustLeave(pod),
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
}

export function createFacts(now: () => number): Facts {
  const since = createSince(now);

  function noteFacts({ type, resource, object }: StoreEvent, at?: number): void {
    const { name, uid } = object.metadata;
    const key = resource === "pods" ? uid : resource === SHADOWS ? nodeOf(object) : name;
    for (const [fact, holds] of Object.entries<(object: KubeObject) => boolean>(OF_KIND[resource] ?? {}))
      since.note(`${key} ${fact}`, type !== "DELETED" && holds(object), at);
  }

  return {
    begin(store) {
      for (const resource of Object.keys(FACTS))
        for (const object of store.list(resource)) noteFacts({ type: "ADDED", resource, object }, -Infinity);
    },
    onEvent(event) {
      noteFacts(event);
    },
    wasSo: (name, fact, at) => since.before(`${name} ${fact}`, at),
  };
}
