/**
 * What must never happen to nodes whose conditions say who works on them, from the store's history alone: we change
 * nothing that somebody else says, begin nothing on a node that somebody else drains or maintains, take no more nodes
 * than such nodes leave, and say of each node what we do with it.
 */
import { dig, isTrue, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, Store, StoreEvent } from "../../emulator/store.ts";
import { MANAGED_LABEL } from "../../../reconciler/nodes/shadow.ts";
import type { Caller } from "../network.ts";
import { isPass } from "./facts.ts";
import { type LifecycleType, OURS, trueConditions } from "./lifecycle.ts";
import { createOverdue } from "./overdue.ts";
import { LEFT_OUT, type NodesShape, POLICIES, SHADOWS } from "./shape.ts";

export interface LifecycleSafetyOptions {
  readonly nodes: Pick<NodesShape, "selective">;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly store: () => Pick<Store, "get" | "list">;
  /** How many milliseconds ago what this actor does now may have been decided. */
  readonly decidedMs: (actor: string) => number;
  /** True of a process that meets no fault by now and has long not stood still: its passes come to their ends. */
  readonly isSteady: (actor: string) => boolean;
  /** Nodes that are out of service by us, and how many may be. */
  readonly out: () => { readonly names: readonly string[]; readonly most: number };
}

export interface LifecycleSafety {
  readonly onRequest: (caller: Caller, method: string, path: string) => void;
  readonly onEvent: (event: StoreEvent, caller: Caller | undefined) => void;
  /** Judges what is not said for longer than this, in milliseconds. */
  readonly look: (silentMs: number) => void;
}

/** A start is two writes: another process writes the second one if the first dies between them. */
const NEXT_RUN_MS = 60_000;
const PLANNED = "MaintenancePlanned";
const [IDLE, STAGES, REBOOTS] = ["Idle", "StagedAndPerformedUpdate", "RebootedIntoUpdate"];
/** What is True of a node in a phase of its update, whoever says it. */
const SAYS: Readonly<Record<string, LifecycleType>> = {
  Draining: "DrainInProgress",
  Rebooting: "MaintenanceInProgress",
  Returning: "MaintenanceInProgress",
};
/** Milliseconds for which the same Event is not written again. */
const QUIET_MS = 300_000;
const WAITS = "InMaintenance";
/** Of these a condition says something, whatever else is. */
const TOLD: ReadonlySet<unknown> = new Set(["Starting", "Staging", "Holding", "Draining", "Rebooting", "Returning"]);

const wantedOf = (shadow: KubeObject | undefined): unknown => dig(shadow, "spec", "state");

export function createLifecycleSafety(options: LifecycleSafetyOptions): LifecycleSafety {
  const { nodes, violated, now, store, decidedMs, isSteady, out } = options;
  /** Since when somebody else drains or maintains a node. */
  const theirsSince = new Map<string, number>();
  /** Since when a node with a slot says nothing of it. */
  const silentSince = new Map<string, number>();
  /** By node when an Event has last said that it waits for somebody else. */
  const heldAt = new Map<string, number>();

  /** What should be said of nodes by now, and is not. */
  function findUnsaid(): ReadonlySet<string> {
    const found = new Set<string>();
    for (const policy of store().list(POLICIES)) {
      for (const one of listOf(dig(policy, "status", "active"))) {
        const [name, phase] = [String(dig(one, "node")), String(dig(one, "phase"))];
        const node = store().get("nodes", undefined, name);
        const says = SAYS[phase];
        if (node && says !== undefined && !trueConditions(node).some(({ type }) => type === says))
          found.add(`${name} is ${phase.toLowerCase()}, and has no condition ${says}`);
      }
      for (const one of listOf(dig(policy, "status", "waiting"))) {
        const name = String(dig(one, "node"));
        if (dig(one, "reason") === WAITS && now() - (heldAt.get(name) ?? -Infinity) > QUIET_MS)
          found.add(`${name} waits for somebody else, and no Event says so`);
      }
    }
    return found;
  }
  const unsaid = createOverdue({ violated, now, find: findUnsaid, isSteady });

  function onEventObject({ type, object }: StoreEvent): void {
    const message = textOf(object["message"]) ?? "";
    if (type !== "DELETED" && object["reason"] === "UpdateHeld" && message.startsWith(WAITS))
      heldAt.set(String(dig(object, "involvedObject", "name")), now());
  }

  function onNode({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const { name } = object.metadata;
    const theirs = trueConditions(object).filter(({ reason }) => reason !== OURS);
    const isTheirs = type !== "DELETED" && theirs.some((one) => one.type !== PLANNED);
    if (!isTheirs) theirsSince.delete(name);
    else if (!theirsSince.has(name)) theirsSince.set(name, now());
    if (!/^(?:reconciler|node-api|agent)-/.test(caller?.actor ?? "") || type !== "MODIFIED") return;
    const kept = new Set(theirs.map((one) => `${one.type} ${one.reason} ${one.message}`));
    for (const one of trueConditions(previous))
      if (one.reason !== OURS && !kept.has(`${one.type} ${one.reason} ${one.message}`))
        violated(`${caller?.actor} changes condition ${one.type} of ${name}, which ${one.reason} has set`);
  }

  /** Somebody else has worked on the node for so long that whoever decided this has seen it. */
  const isTheirs = (name: string, actor: string): boolean =>
    now() - (theirsSince.get(name) ?? Infinity) > decidedMs(actor) + NEXT_RUN_MS;

  function onShadow({ type, object, previous }: StoreEvent, { actor }: Caller): void {
    const name = object.metadata.name.replace(/^brs-/, "");
    const [was, is] = [wantedOf(previous), wantedOf(object)];
    const what =
      is === STAGES && was === IDLE ? "starts the update" : is === REBOOTS && was !== REBOOTS ? "drains" : undefined;
    if (type === "DELETED" || what === undefined || !actor.startsWith("reconciler")) return;
    if (isTheirs(name, actor)) violated(`${actor} ${what} of ${name}, on which somebody else works`);
    if (is !== STAGES) return;
    const { names, most } = out();
    const others = [...theirsSince.keys()].filter(
      (other) => other !== name && !names.includes(other) && isTheirs(other, actor) && countsAgainst(other),
    );
    if (others.length > 0 && names.length + others.length >= most)
      violated(
        `${actor} starts ${name} beside ${[...names, ...others].join(", ")}, which are out of service: ${most} may be`,
      );
  }

  /** Of the policy, and Ready: one that is not may never be. */
  function countsAgainst(name: string): boolean {
    const node = store().get("nodes", undefined, name);
    const { labels = {} } = node?.metadata ?? {};
    return (
      isTrue(node, "Ready") && labels[MANAGED_LABEL] !== undefined && !(nodes.selective && labels[LEFT_OUT] !== "false")
    );
  }

  return {
    onEvent(event, caller) {
      if (event.resource === "events") onEventObject(event);
      if (["nodes", "events", POLICIES].includes(event.resource)) unsaid.note();
      if (event.resource === "nodes") onNode(event, caller);
      if (event.resource === SHADOWS && caller) onShadow(event, caller);
    },
    onRequest({ actor, sentAt = now() }, method, path) {
      if (actor.startsWith("reconciler") && method === "GET" && isPass(path)) unsaid.onPass(actor, sentAt);
    },
    look(silentMs) {
      const active = store()
        .list(POLICIES)
        .flatMap((policy) => listOf(dig(policy, "status", "active")))
        .filter((one) => TOLD.has(dig(one, "phase")))
        .map((one) => String(dig(one, "node")));
      for (const name of silentSince.keys()) if (!active.includes(name)) silentSince.delete(name);
      for (const name of active) {
        const node = store().get("nodes", undefined, name);
        if (!node || trueConditions(node).length > 0) silentSince.delete(name);
        else if (!silentSince.has(name)) silentSince.set(name, now());
        else if (now() - (silentSince.get(name) ?? 0) > silentMs) {
          violated(`${name} is updated for ${silentMs} ms, and no condition says so`);
          silentSince.set(name, Infinity);
        }
      }
    },
  };
}
