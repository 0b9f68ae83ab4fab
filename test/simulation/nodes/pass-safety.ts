/**
 * Judges what a reconciler has read before it lets a node go on, and before it frees a slot (§17.1 to §17.5, §17.12):
 *
 *   list of policies -> of shadows -> of nodes -> of pods of single nodes --> status of the policy --> shadows
 *                                                                             with the version       with theirs
 *
 * What was so before the first list, and still is, the pass has read; and its policy is the one that its write replaces.
 */
import { dig, isTrue, listOf, numberOf, plainText, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { NODES_CHECK } from "../checks/objects.ts";
import type { Told } from "../checks/prometheus.ts";
import { LEASES, NAMESPACE, zoneOf } from "../names.ts";
import type { Caller } from "../network.ts";
import { MANAGED_LABEL } from "../../../reconciler/nodes/shadow.ts";
import { createOverdue } from "./overdue.ts";
import { type Fact, isMarked, isPass, nodeOf, REBOOTS, wantedOf } from "./facts.ts";
import { createHeld, type HeldOptions, WORKED_ON } from "./held.ts";
import { createPassReads } from "./pass-reads.ts";
import { entriesOf, type Entry, frozenId, isCleared, isFrozen, isReleased, isSame, recordsOf } from "./policies.ts";
import { LEFT_OUT, POLICIES, SHADOWS, ZONE_LABEL } from "./shape.ts";

export interface PassSafetyOptions extends HeldOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** True of a process that meets no fault by now and has long not stood still: its passes come to their ends. */
  readonly isSteady: (actor: string) => boolean;
}

const NODE = /^\/api\/v1\/nodes\/([^/?]+)(?:\?|$)/;
const OURS = /^(?:reconciler|node-api)-/;
const LEASE = "zonewise-reconciler";
const SEEN = "zonewise/node-update-policy-seen";
/** By the reason why a node waits what it cannot be then. */
const REFUTED: Readonly<Partial<Record<string, Fact>>> = {
  NodeNotReady: "is Ready",
  NodeTerminating: "stays",
  BeingRemoved: "stays",
  NotManaged: "has its label",
  InMaintenance: "is left to us",
};
/** Reasons that are named although somebody else works on the node. */
const BEFORE_WORK: ReadonlySet<string> = new Set([
  "SeveralPolicies",
  "NodeTerminating",
  "BeingRemoved",
  "InMaintenance",
]);
/** A node has lost its label. */
const LEFT = "NoLongerManaged";
/** Reasons for which an attempt is given up on a node that is Ready alone; and phases in which it may be lost anyway. */
const READY_ONLY: ReadonlySet<unknown> = new Set(["DrainTimeout", "Frozen", "HealthTimeout"]);
const BEFORE_REBOOT: ReadonlySet<string> = new Set(["Starting", "Staging", "Holding", "Draining"]);
/** Reasons for which a slot is kept until a person decides. */
const FREEZES: ReadonlySet<unknown> = new Set(["RebootTimeout", "ReturnTimeout"]);
/** A pod of the node itself, by what a staged node waits for. */
const NO_PLACE = /^\S+\/(\S+) of \S+ has no place: /;
/** What is wanted of a node in an update; what nobody can read is nobody's. */
const STARTED: ReadonlySet<string> = new Set(["StagedAndPerformedUpdate", REBOOTS, "MonitoringUpdate"]);
/** Failures of a check of which a process that has died did not store each. */
const MANY = 3;
/** Times of a status have whole seconds. */
const SECOND_MS = 1000;
/** Characters of a reason for which a status has room, beside all else that it may say of a thousand nodes. */
const MAX_REASON = 200;

/** Calls `violated` with what happened, in words. `onRequest` is told of requests that took effect. */
export function createPassSafety({ shape, facts, violated, now, store, isSteady }: PassSafetyOptions) {
  const reads = createPassReads(now);
  const { whyHeld, findPlace } = createHeld({ shape, facts, store });
  /** Calls that have undone our cordon of a node. */
  const undone = new WeakSet<Caller>();
  /** By policy who last wrote its status, and when it was last changed. */
  const written = new Map<string, { readonly by: string; readonly at: number }>();
  /** By node who last wanted its reboot, and when. */
  const drained = new Map<string, { readonly by: string; readonly at: number }>();
  /** By node until when it was among those that have left their slots before they were done. */
  const letGoUntil = new Map<string, number>();
  /** Since when the Lease says that there has been a policy. */
  let rememberedSince = Infinity;

  /** The one-shot of a policy, while each of its nodes waits for a cordon of somebody else. */
  function isOpenInVain(policy: KubeObject): boolean {
    const waiting = listOf(dig(policy, "status", "waiting"));
    const isCordoned = (name: string): boolean => facts.wasSo(name, "is cordoned by somebody else", now());
    const nodes = store().list("nodes");
    const zoneOfNode = ({ metadata }: KubeObject): unknown => metadata.labels?.[ZONE_LABEL];
    const waitsForPeople = (one: unknown): boolean => {
      const node = nodes.find(({ metadata }) => metadata.name === dig(one, "node"));
      const others = nodes.filter((other) => node && other !== node && zoneOfNode(other) === zoneOfNode(node));
      return (
        others.length > 0 &&
        dig(one, "reason") === "NoPlaceForPods" &&
        others.every(({ metadata }) => isCordoned(metadata.name))
      );
    };
    return (
      dig(policy, "status", "campaign") !== undefined &&
      dig(policy, "status", "windowOpen") === true &&
      entriesOf(policy).length === 0 &&
      waiting.length > 0 &&
      waiting.every(waitsForPeople)
    );
  }

  /** Nodes whose shadows want what a policy that is frozen, or none, lets nobody do. */
  function findLeft(): ReadonlySet<string> {
    const policies = store().list(POLICIES);
    const found = new Set<string>();
    for (const policy of policies.filter(isFrozen))
      for (const { node } of entriesOf(policy).filter(({ phase }) => phase === "Draining"))
        if (isTrue(store().get("nodes", undefined, node), "Ready"))
          found.add(`${node} is being drained, and ${policy.metadata.name} is frozen`);
    for (const policy of policies)
      if (isOpenInVain(policy))
        found.add(`${policy.metadata.name} waits for people's cordons, and its one-shot is not over`);
    for (const { metadata } of store().list("nodes")) {
      const { name, labels } = metadata;
      const shadow = store().get(SHADOWS, NAMESPACE, `brs-${name}`);
      const wanted = textOf(dig(shadow, "spec", "state")) ?? "Idle";
      const isOf = (policy: KubeObject): boolean =>
        selects(policy, name) || entriesOf(policy).some(({ node }) => node === name);
      const isOurs = labels?.[MANAGED_LABEL] !== undefined && !shadow?.metadata.deletionTimestamp;
      if (isOurs && STARTED.has(wanted) && !policies.some(isOf))
        found.add(`${name} wants ${wanted}, and no policy has it`);
    }
    return found;
  }
  const left = createOverdue({ violated, now, find: findLeft, isSteady });

  function onPolicy({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const { name } = object.metadata;
    for (const { node } of previous ? recordsOf(previous, "deferred") : [])
      if (!recordsOf(object, "deferred").some((one) => one.node === node)) letGoUntil.set(node, now());
    written.set(name, { by: caller?.actor ?? "", at: now() });
    if (!caller?.actor.startsWith("reconciler")) return;
    const at = facts.seen(reads.begunAt(caller));
    if (type === "ADDED") onMade(name, caller);
    if (type !== "MODIFIED" || !previous) return;
    for (const entry of entriesOf(object)) {
      const before = entriesOf(previous).find((one) => isSame(one, entry));
      if (!before && entry.phase === "Starting")
        onStart(entry, { policy: previous, after: object, actor: caller.actor, caller, at });
      if (entry.phase === "Holding" && entry.waitsFor !== before?.waitsFor) onHeld(entry, object, caller.actor, at);
      if (before && !before.ending && entry.ending) onFailure(entry, object, caller.actor, at);
      if ((entry.waitsFor ?? "").length > MAX_REASON)
        violated(`${name} says with ${entry.waitsFor?.length} characters why ${entry.node} waits`);
    }
    for (const one of listOf(dig(object, "status", "waiting"))) onWaiting(one, object, caller.actor, at);
    const failed = recordsOf(object, "failed");
    const twice = failed.find((one, i) => failed.findIndex((other) => isSame(one, other)) < i);
    if (twice) violated(`${caller.actor} counts the failure of ${twice.node} twice`);
    for (const { node, count = 0 } of recordsOf(object, "deferred")) {
      const earlier = recordsOf(previous, "deferred").find((one) => one.node === node)?.count ?? 0;
      const ended = entriesOf(previous).find((one) => one.node === node && one.ending);
      if (count > earlier && ended && entriesOf(object).some((one) => isSame(one, ended)))
        violated(`${caller.actor} counts the same attempt at ${node} again`);
    }
    if (isCleared(previous)) return;
    if (frozenId(previous) !== undefined && frozenId(object) !== frozenId(previous))
      violated(`${caller.actor} clears the freeze of ${name}, which nobody has asked for`);
    for (const entry of entriesOf(previous))
      if (!entriesOf(object).some((one) => isSame(one, entry))) onFreed(entry, object, caller, at);
  }

  /** Why a staged node waits: nodes that wait for their own reboot are places. */
  function onHeld({ node, waitsFor = "" }: Entry, policy: KubeObject, actor: string, at: number): void {
    const [, pod] = NO_PLACE.exec(waitsFor) ?? [];
    if (pod === undefined || !shape.zones.includes(zoneOf(pod))) return;
    const others = store()
      .list(POLICIES)
      .filter(({ metadata }) => metadata.name !== policy.metadata.name);
    // Those before it may go on to their reboot in this pass.
    const own = entriesOf(policy);
    const before = own.slice(
      0,
      own.findIndex((one) => one.node === node),
    );
    const ahead = before.flatMap((one) => (one.phase === "Holding" ? [{ ...one, phase: "Draining" }] : []));
    const place = findPlace({ node, at, active: [...ahead, ...[policy, ...others].flatMap(entriesOf)] });
    if (place !== undefined)
      violated(`${actor} says that ${pod} of ${node} has no place, and has read that ${place} is one`);
  }

  /** True if the status says of a node that the limit is reached, and no node but the active ones can take a slot. */
  function isBelowLimit(policy: KubeObject, at: number): boolean {
    const most = numberOf(dig(policy, "spec", "maxConcurrent")) ?? 0;
    const active = entriesOf(policy).length;
    const others = idleOf(policy).filter((name) => isReleased(policy, name) || !facts.wasSo(name, "is left to us", at));
    if (others.length === 0) return active < most;
    return active === 0 && most > 0 && others.every((name) => facts.wasSo(name, "is not Ready", at));
  }

  /** What its status says why a node waits. */
  function onWaiting(waiting: unknown, policy: KubeObject, actor: string, at: number): void {
    const [name, reason] = [textOf(dig(waiting, "node")) ?? "", textOf(dig(waiting, "reason")) ?? ""];
    const refuted = REFUTED[reason];
    if (refuted !== undefined && facts.wasSo(name, refuted, at))
      violated(`${actor} says that ${name} waits as ${reason}, and has read that it ${refuted}`);
    if (reason === "LimitReached" && isBelowLimit(policy, at))
      violated(`${actor} says that ${name} waits as ${reason}, and has read that a slot is free`);
    if (shape.nodes?.lifecycle && !BEFORE_WORK.has(reason) && facts.wasSo(name, WORKED_ON, at))
      violated(`${actor} says that ${name} waits as ${reason}, and has read that it ${WORKED_ON}`);
  }

  /** The policy `default` is made where there has never been one. */
  function onMade(name: string, { actor }: Caller): void {
    if (rememberedSince < facts.seen(reads.bornAt(actor)))
      violated(`${actor} makes policy ${name}, and its Lease says that there has been one`);
  }

  interface Start {
    /** As it was read. */
    readonly policy: KubeObject;
    readonly after: KubeObject;
    readonly actor: string;
    readonly caller: Caller;
    /** What was so before has been read. */
    readonly at: number;
  }

  function onStart(entry: Entry, start: Start): void {
    const why =
      whyNotStart(entry, start) ??
      whyHeld({ node: entry.node, at: start.at, active: entriesOf(start.after), isStart: true });
    onGoing(entry.node, `starts ${entry.node}`, start.caller);
    if (why !== undefined) violated(`${start.actor} starts ${entry.node}, and has read that ${why}`);
  }

  /** By the expression of the check how often it has not succeeded since it last did. */
  const failures = new Map<string, number>();

  /** When a check last succeeded, and the passes in which nodes of each policy have left their slots begun. */
  let succeededAt = -Infinity;
  const leftAt = new Map<string, number>();

  /** Answers from before do not count: a node has left its slot since, or they are from a time that is to come. */
  function askedSince(policy: KubeObject, after: KubeObject, caller: Caller): number {
    const leaves = entriesOf(policy).some((one) => !entriesOf(after).some((other) => isSame(one, other)));
    const isAhead = listOf(dig(policy, "status", "checks", "results")).some(
      (one) => Date.parse(String(dig(one, "lastTime"))) > now() + shape.skewMs + SECOND_MS,
    );
    return isAhead || (leaves && !isCleared(policy))
      ? reads.begunAt(caller)
      : (leftAt.get(policy.metadata.name) ?? -Number.MAX_VALUE);
  }

  function whyNotStart({ node, zone }: Entry, { policy, after, caller, at }: Start): string | undefined {
    const limit = plainText(dig(policy, "spec", "maxConcurrent") ?? 1);
    const most = /^\d+$/.test(limit) ? Number(limit) : Infinity;
    if (isFrozen(policy)) return "its policy is frozen";
    const failed = failures.get(NODES_CHECK) ?? 0;
    const hasCheck = listOf(dig(policy, "spec", "checks")).length > 0;
    if (hasCheck && failed >= MANY) return `its check has failed ${failed} times`;
    if (hasCheck && succeededAt < askedSince(policy, after, caller))
      return "its check has not succeeded since a node last left its slot";
    if (dig(policy, "spec", "enabled") === false) return "updates are switched off";
    if (most === Infinity && !/%$|^unlimited$/i.test(limit)) return "its policy cannot be read";
    const active = entriesOf(after);
    const starting = active.filter(
      (one) => one.phase === "Starting" && !entriesOf(policy).some((old) => isSame(old, one)),
    );
    const { names, lost } = countOthers(after, at);
    const taken = [...active.filter((one) => !starting.includes(one)).map((one) => one.node), ...names];
    // Nodes that may never be Ready again leave one slot.
    if (starting.length > Math.max(most - taken.length - lost.length, taken.length === 0 ? Math.min(1, most) : 0))
      return `${[...taken, ...lost, ...starting.map((one) => one.node)].join(", ")} are out of service or come to it: ${most} may be`;
    const others = active.filter((one) => one.node !== node);
    const isInOrder = dig(policy, "spec", "zonesInOrder") !== true || others.some((one) => one.zone === zone);
    if (others[0] && !isInOrder) return `${others[0].node} of another zone is not finished`;
    const rival = store()
      .list(POLICIES)
      .find(
        (other) =>
          other.metadata.name !== policy.metadata.name &&
          facts.wasSo(other.metadata.name, "is there", at) &&
          selects(other, node),
      );
    if (rival) return `${rival.metadata.name} selects it, too`;
    return (["is cordoned by us", "has lost its label"] as const).find((fact) => facts.wasSo(node, fact, at));
  }

  /**
   * Nodes without a slot that take one: those that a person has released from a freeze and that are not back in
   * service, and those that somebody else works on. What is not Ready is `lost`.
   */
  function countOthers(
    policy: KubeObject,
    at: number,
  ): { readonly names: readonly string[]; readonly lost: readonly string[] } {
    const counted = idleOf(policy).filter(
      (name) =>
        facts.wasSo(name, "has its label", at) &&
        ((isReleased(policy, name) && facts.wasSo(name, "is cordoned by us", at)) ||
          (shape.nodes?.lifecycle && facts.wasSo(name, WORKED_ON, at))),
    );
    return {
      names: counted.filter((name) => facts.wasSo(name, "is Ready", at)),
      lost: counted.filter((name) => facts.wasSo(name, "is not Ready", at)),
    };
  }

  /** The nodes that a policy selects, and that have no slot. */
  const idleOf = (policy: KubeObject): readonly string[] => {
    const active = new Set(entriesOf(policy).map((one) => one.node));
    return store()
      .list("nodes")
      .map(({ metadata }) => metadata.name)
      .filter((name) => !active.has(name) && selects(policy, name));
  };

  const selects = (policy: KubeObject, node: string): boolean =>
    dig(policy, "spec", "nodeSelector", LEFT_OUT) === undefined ||
    store().get("nodes", undefined, node)?.metadata.labels?.[LEFT_OUT] === "false";

  /** An attempt is given up as it has failed. */
  function onFailure({ node, bootId, ending, ...entry }: Entry, policy: KubeObject, actor: string, at: number): void {
    const isCounted = recordsOf(policy, "failed").some((one) => isSame(one, { node, ...entry }));
    const needsReady = READY_ONLY.has(ending?.reason) || (ending?.reason === LEFT && !BEFORE_REBOOT.has(entry.phase));
    if (ending && needsReady && facts.wasSo(node, "is not Ready", at))
      violated(`${actor} gives up ${node} as ${ending.reason}, and has read that it is not Ready`);
    if (ending?.reason === "UpdateFailed" && bootId !== "" && !isCounted && facts.hasRebooted(node, bootId, at))
      violated(`${actor} does not count the failure of ${node}, and has read that it has rebooted`);
  }

  /** A slot is free again. */
  function onFreed(entry: Entry, policy: KubeObject, caller: Caller, at: number): void {
    const { actor } = caller;
    const { node: name, nodeUid, ending } = entry;
    leftAt.set(policy.metadata.name, reads.begunAt(caller));
    if (facts.wasGone(name, at) && !reads.hasLookedFor(caller, name))
      violated(`${actor} frees the slot of ${name}, for which it has not looked`);
    const node = store().get("nodes", undefined, name);
    // Of another policy by now, or gone.
    if (node?.metadata.uid !== nodeUid || !facts.wasSo(name, "is there", at)) return;
    const { reason } = recordsOf(policy, "deferred").find((one) => one.node === name) ?? {};
    const shadow = store().get(SHADOWS, NAMESPACE, `brs-${name}`);
    const mayReboot =
      facts.wasSo(name, "has announced its reboot", at) &&
      dig(shadow, "status", "rebooting", "boot_id") === dig(node, "status", "nodeInfo", "bootID");
    const isLeft = reason === LEFT && dig(shadow, "status", "current_state") !== "Idle";
    const isOut = isLeft || (!ending && reason !== undefined && reason !== "UpdateFailed");
    const why = facts.wasSo(name, "is cordoned by us", at)
      ? "is cordoned by us"
      : isOut && facts.wasSo(name, "is not Ready", at)
        ? "is not Ready"
        : isLeft && mayReboot
          ? "has announced its reboot"
          : FREEZES.has(reason)
            ? `waits for a person after its ${reason}`
            : reason === undefined && facts.hadNoShadow(name, at)
              ? "may not have its update, for no reason that is named"
              : undefined;
    if (why !== undefined) violated(`${actor} frees the slot of ${name}, which ${why}`);
  }

  /** Our cordon goes: the version of the node that was read is the one before. */
  function onNode({ type, object, previous }: StoreEvent, caller: Caller): void {
    if (type !== "MODIFIED" || !previous || !isMarked(previous) || isMarked(object)) return;
    const { name } = object.metadata;
    undone.add(caller);
    if (!isTrue(previous, "Ready")) violated(`${caller.actor} uncordons ${name}, which is not Ready`);
    const at = facts.seen(reads.begunAt(caller));
    const boot = dig(store().get(SHADOWS, NAMESPACE, `brs-${name}`), "status", "rebooting", "boot_id");
    const mayGoDown =
      facts.wasSo(name, "has announced its reboot", at) && dig(previous, "status", "nodeInfo", "bootID") === boot;
    const isLetGo =
      (letGoUntil.get(name) ?? -Infinity) >= reads.begunAt(caller) ||
      store()
        .list(POLICIES)
        .some((policy) => recordsOf(policy, "deferred").some((one) => one.node === name));
    if (caller.actor.startsWith("reconciler") && mayGoDown && !isLetGo)
      violated(`${caller.actor} uncordons ${name}, and has read that it is about to reboot`);
  }

  /** Whether a drain of the node would end is known by its pods alone. */
  function onGoing(node: string, what: string, caller: Caller): void {
    const at = facts.seen(reads.begunAt(caller));
    const isUnknown = ({ metadata: { name, uid }, ...pod }: KubeObject): boolean =>
      dig(pod, "spec", "nodeName") === node &&
      facts.wasSo(uid, "is on its node", at) &&
      reads.mayNotRead(caller, zoneOf(name));
    if (store().list("pods").some(isUnknown)) violated(`${caller.actor} ${what}, and may not read its pods' volume`);
    if (!reads.hasListedPods(caller, node)) violated(`${caller.actor} ${what}, whose pods it has not listed`);
  }

  function onShadow({ type, object, previous }: StoreEvent, caller: Caller): void {
    if (type === "DELETED" && caller.actor.startsWith("reconciler")) onShadowDeleted(nodeOf(object), caller);
    const [was, is] = [wantedOf(previous), wantedOf(object)];
    if (type !== "MODIFIED" || was === is || !caller.actor.startsWith("reconciler")) return;
    const name = nodeOf(object);
    const passAt = reads.begunAt(caller);
    const at = facts.seen(passAt);
    if (is === "MonitoringUpdate" && facts.wasSo(name, "is not Ready", at))
      violated(`${caller.actor} wants ${name} to be given back, which is not Ready`);
    if (is !== REBOOTS) return;
    const policies = store()
      .list(POLICIES)
      .filter(({ metadata }) => {
        const { by, at: changedAt } = written.get(metadata.name) ?? { by: "", at: -Infinity };
        return changedAt < at || (by === caller.actor && changedAt > passAt);
      });
    const own = policies.find((policy) => entriesOf(policy).some((one) => one.node === name));
    const ahead = [...drained].flatMap(([node, { by, at: since }]) =>
      by === caller.actor && since > passAt ? [{ node, phase: "Draining" } as Entry] : [],
    );
    const why =
      own && isFrozen(own)
        ? "its policy is frozen"
        : whyHeld({ node: name, at, active: [...policies.flatMap(entriesOf), ...ahead], isStart: false });
    onGoing(name, `drains ${name}`, caller);
    if (why !== undefined) violated(`${caller.actor} drains ${name}, and has read that ${why}`);
    drained.set(name, { by: caller.actor, at: now() });
  }

  /** A node that has lost its label needs its shadow until it is back in service. */
  function onShadowDeleted(name: string, caller: Caller): void {
    const at = facts.seen(reads.begunAt(caller));
    const fact = (["is cordoned by us", "has its label"] as const).find((one) => facts.wasSo(name, one, at));
    if (fact !== undefined) violated(`${caller.actor} deletes the shadow of ${name}, and has read that it ${fact}`);
  }

  return {
    onEvent(event: StoreEvent, caller: Caller | undefined): void {
      const { type, resource, object } = event;
      if (["nodes", POLICIES, SHADOWS].includes(resource)) left.note();
      if (resource === "nodes" && caller && OURS.test(caller.actor)) onNode(event, caller);
      if (resource === POLICIES) onPolicy(event, caller);
      if (resource === SHADOWS && caller) onShadow(event, caller);
      if (resource !== LEASES || object.metadata.name !== LEASE) return;
      const isRemembered = type !== "DELETED" && object.metadata.annotations?.[SEEN] !== undefined;
      rememberedSince = isRemembered ? Math.min(rememberedSince, now()) : Infinity;
    },
    /** A check is answered. */
    onAnswer({ expr, verdict }: Told): void {
      if (expr === NODES_CHECK && verdict === "Success") succeededAt = now();
      failures.set(expr, verdict === "Success" ? 0 : (failures.get(expr) ?? 0) + 1);
    },
    onAnswered: (caller: Caller, method: string, path: string, _: string, status: number) =>
      reads.onAnswered(caller, method, path, status),
    onRequest(caller: Caller, method: string, path: string, body = ""): void {
      reads.onRequest(caller, method, path);
      if (caller.actor.startsWith("reconciler") && method === "GET" && isPass(path))
        left.onPass(caller.actor, caller.sentAt ?? now());
      const [, name] = method === "PATCH" && OURS.test(caller.actor) ? (NODE.exec(path) ?? []) : [];
      if (name !== undefined && dig(JSON.parse(body || "{}"), "spec", "unschedulable") === null && !undone.has(caller))
        violated(`${caller.actor} uncordons ${name}, whose cordon is not ours`);
    },
  };
}
