/**
 * What must never happen to nodes, judged from the store's history and from what hosts do. It shares no rule with the
 * product.
 *
 * A node is *out by us* from our cordon, or from the call that reboots its host, until it is Ready and in service again,
 * or has a person's cordon alone.
 */
import { CORDONED_BY, MANAGED_LABEL } from "../../../reconciler/nodes/shadow.ts";
import { dig, isTrue, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, Store, StoreEvent } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import type { HostTold } from "./fleet.ts";
import { type NodesShape, POLICIES, POLICY, SHADOWS, ZONE_LABEL } from "./shape.ts";

export interface NodeSafetyOptions {
  readonly nodes: NodesShape;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly store: () => Pick<Store, "get" | "list">;
}

export interface NodeSafety {
  readonly onEvent: (event: StoreEvent, caller: Caller | undefined) => void;
  readonly onHost: (told: HostTold) => void;
}

/** Longer than a process stands still and a write is on its way. */
const LATE_MS = 150_000;
/** Pods tell whole seconds of when they were made. */
const WHOLE_SECOND_MS = 999;
/** The start of a drain is stored in whole seconds. */
const STORED_MS = 1000;
const REBOOTS = "RebootedIntoUpdate";

interface Out {
  readonly zone: string;
  readonly since: number;
  /** A person has taken the matter over. */
  excused: boolean;
}

const isOurs = (caller: Caller | undefined): boolean => /^(?:node-api|reconciler)/.test(caller?.actor ?? "");
const isTheirs = (caller: Caller | undefined): boolean => caller?.actor === "human";
const isCordoned = (node: KubeObject | undefined): boolean => dig(node, "spec", "unschedulable") === true;
const nodeOf = (shadow: KubeObject): string => shadow.metadata.name.replace(/^brs-/, "");
const wantedOf = (shadow: KubeObject | undefined): unknown => dig(shadow, "spec", "state");

export function createNodeSafety({ nodes, violated, now, store }: NodeSafetyOptions): NodeSafety {
  const out = new Map<string, Out>();
  /** Nodes whose hosts have been asked to reboot, and when. */
  const asked = new Map<string, number>();
  /** Nodes whose hosts are down for us. */
  const down = new Set<string>();
  /** By node the attempt in which its host has gone down for us. */
  const attempts = new Map<string, string>();
  /** Cordons of people. */
  const theirs = new Set<string>();
  /** When a person last uncordoned a node, labelled it, or created it again. */
  const touchedAt = new Map<string, number>();
  /** Until when the reboot of a node was wanted. */
  const wantedUntil = new Map<string, number>();
  /** Since when the policy is frozen. */
  let frozenSince: number | undefined;
  let limits: readonly { readonly most: number; readonly until: number }[] = [];

  const isAfter = (at: number | undefined, ms = LATE_MS): boolean => at !== undefined && now() - at > ms;
  const wasTouched = (node: string): boolean => !isAfter(touchedAt.get(node) ?? -Infinity);
  const mostNow = (): number =>
    Math.max(
      nodes.maxConcurrent,
      limitOf(policy()),
      ...limits.filter(({ until }) => !isAfter(until)).map(({ most }) => most),
    );
  const policy = (): KubeObject | undefined => store().get(POLICIES, undefined, POLICY);

  function onNode({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const { name, annotations = {}, labels = {} } = object.metadata;
    if (type !== "MODIFIED") return forget(name);
    const [before, after] = [isCordoned(previous), isCordoned(object)];
    if (isOurs(caller) && before && !after && theirs.has(name))
      violated(`${caller?.actor} uncordons ${name}, which a person has cordoned`);
    if (isOurs(caller) && theirs.has(name) && annotations[CORDONED_BY] !== undefined)
      violated(`${caller?.actor} takes a person's cordon of ${name} for ours`);
    if (isTheirs(caller) && after && !before) theirs.add(name);
    if (!after) theirs.delete(name);
    if (
      isTheirs(caller) &&
      ((before && !after) || labels[MANAGED_LABEL] !== previous?.metadata.labels?.[MANAGED_LABEL])
    )
      touchedAt.set(name, now());
    if (isOurs(caller) && after && !before) takeOut(object, String(caller?.actor));
    const isLeft = !after || (theirs.has(name) && !down.has(name));
    if (isLeft && !asked.has(name) && isTrue(object, "Ready")) out.delete(name);
  }

  function forget(node: string): void {
    out.delete(node);
    theirs.delete(node);
    touchedAt.set(node, now());
  }

  function takeOut({ metadata: { name, labels } }: KubeObject, by: string): void {
    if (out.has(name)) return;
    const zone = labels?.[ZONE_LABEL] ?? "";
    const others = [...out].filter(([, { excused }]) => !excused);
    const names = others.map(([other]) => other).join(", ");
    if (others.length >= mostNow())
      violated(`${name} is taken out of service by ${by} while ${names} are: ${mostNow()} may be`);
    else if (others.some(([, other]) => other.zone !== zone))
      violated(`two zones at once: ${name} is taken out of service by ${by} while ${names} are`);
    out.set(name, { zone, since: now(), excused: false });
  }

  function onPolicy({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    if (object.metadata.name !== POLICY) return;
    if (type === "MODIFIED") limits = [...limits, { most: limitOf(previous), until: now() }];
    // Who deletes the policy, or goes on after a freeze, lets go of the nodes that are out.
    if (
      type === "DELETED" ||
      (isTheirs(caller) && dig(object, "spec", "unfreeze") !== dig(previous, "spec", "unfreeze"))
    )
      for (const one of out.values()) one.excused = true;
    frozenSince = type !== "DELETED" && dig(object, "status", "frozen") ? (frozenSince ?? now()) : undefined;
  }

  function onShadow({ type, object, previous }: StoreEvent): void {
    if (wantedOf(previous) === REBOOTS && (type === "DELETED" || wantedOf(object) !== REBOOTS))
      wantedUntil.set(nodeOf(object), now());
  }

  function onPod({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const begins = type === "MODIFIED" && object.metadata.deletionTimestamp && !previous?.metadata.deletionTimestamp;
    if (!begins || !caller?.actor.startsWith("node-api")) return;
    const node = String(dig(object, "spec", "nodeName"));
    const wanted = wantedOf(store().get(SHADOWS, NAMESPACE, `brs-${node}`));
    if (wanted !== REBOOTS && isAfter(wantedUntil.get(node) ?? -Infinity))
      violated(`${caller.actor} evicts ${object.metadata.name} from ${node}, whose reboot nobody wants`);
  }

  /** When the attempt began that has the node in a slot. */
  const attemptOf = (node: string): string | undefined =>
    store()
      .list(POLICIES)
      .flatMap((one) => listOf(dig(one, "status", "active")))
      .filter((one) => dig(one, "node") === node)
      .map((one) => textOf(dig(one, "startedAt")))[0];

  function onAsked(node: string): void {
    const object = store().get("nodes", undefined, node);
    const shadow = store().get(SHADOWS, NAMESPACE, `brs-${node}`);
    const boot = dig(object, "status", "nodeInfo", "bootID");
    if (shadow && !wasTouched(node) && dig(shadow, "status", "rebooting", "boot_id") !== boot)
      violated(`${node} is rebooted without an announcement of it`);
    if (isAfter(frozenSince)) violated(`${node} is rebooted long after the policy has frozen`);
    const attempt = attemptOf(node);
    if (attempt !== undefined && attempts.get(node) === attempt)
      violated(`${node} is rebooted again in an attempt in which it has rebooted`);
    if (object) takeOut(object, "its agent");
    asked.set(node, now());
  }

  function onDown(node: string): void {
    const askedAt = asked.get(node);
    if (askedAt === undefined) return;
    asked.delete(node);
    down.add(node);
    attempts.set(node, attemptOf(node) ?? "");
    if (wasTouched(node)) return;
    if (!isCordoned(store().get("nodes", undefined, node))) violated(`${node} reboots without a cordon`);
    const left = store()
      .list("pods")
      .filter((pod) => dig(pod, "spec", "nodeName") === node && mustLeave(pod))
      // Somebody may put a pod there once the host has been asked.
      .filter(({ metadata }) => Date.parse(metadata.creationTimestamp) + WHOLE_SECOND_MS < askedAt);
    const forcedMs = nodes.drain.onTimeout === "Reboot" ? nodes.drain.timeoutSeconds * 1000 - STORED_MS : Infinity;
    if (left.length > 0 && now() - (out.get(node)?.since ?? now()) < forcedMs)
      violated(`${node} reboots with ${left.map(({ metadata }) => metadata.name).join(", ")} on it`);
  }

  return {
    onEvent(event, caller) {
      if (event.resource === "nodes") onNode(event, caller);
      if (event.resource === POLICIES) onPolicy(event, caller);
      if (event.resource === SHADOWS) onShadow(event);
      if (event.resource === "pods") onPod(event, caller);
    },
    onHost({ node, what }) {
      if (what === "asked") onAsked(node);
      if (what === "down") onDown(node);
      if (what === "up") down.delete(node);
    },
  };
}

const limitOf = (policy: KubeObject | undefined): number => numberOf(dig(policy, "spec", "maxConcurrent")) ?? 0;

/** What is not over, and is no DaemonSet's. */
const mustLeave = (pod: KubeObject): boolean =>
  !["Succeeded", "Failed"].includes(String(dig(pod, "status", "phase"))) &&
  !pod.metadata.ownerReferences?.some(({ kind }) => kind === "DaemonSet");
