/**
 * Judges what the statuses of a group and of a budget say as they are written, and the questions behind them (§5.10,
 * §11): a group that is settled says so; no end is estimated while one waits; a new spec of a budget is answered at once; the webhook is asked once
 * a minute, and nothing is said of it before it can have answered.
 */
import { dig, type Fields, fieldsOf, isTrue, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { BUDGETS, GROUP, NAMESPACE, ROLLOUT_GROUPS } from "../names.ts";
import type { Caller } from "../network.ts";

export interface StatusSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** True while no call is lost, late or refused. */
  readonly isQuiet: () => boolean;
  /** True if budgets are read for nodes, too, of which their statuses know nothing. */
  readonly isReadForMore: boolean;
  /** True while nothing is left to do for the zones. */
  readonly areZonesSettled: () => boolean;
}

const DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io";
/** A reconciler looks so often whether there is the kind. */
const KNOWN_MS = 60_000;
const ZONES: ReadonlySet<string> = new Set(["statefulsets.apps", "pods"]);
const ZONE_LIST = /\/statefulsets(?:\?(?!.*watch=)|$)/;
const BUDGET_LIST = /\/zoneawarepoddisruptionbudgets(?:\?|$)/;
const BUDGET_STATUS = /\/zoneawarepoddisruptionbudgets\/([^/?]+)\/status/;
const PROBE = /\/pods\/zonewise-probe\/eviction/;
const RELEASED = /\/leases\/zonewise-reconciler(?:\?|$)/;
/** A budget says so of a webhook that has answered. */
const GUARDED = "Protecting";
/** With this the webhook refuses a probe. */
const REFUSED = 400;
/** An answer counts for a minute, and a probe may take 5 s; less what clocks may differ. */
const [PROBED_MS, PROBE_MS] = [59_000, 4900];
/** A session that ends gives its Lease back within this time. */
const ENDS_MS = 1000;
/** A tick of a group that is slow ends, and the status is written. */
const ANSWERED_MS = 15_000;
/** With the second list in this time, a group that has been settled for so long says so. */
const [AGAIN_MS, SETTLED_MS] = [4000, 15_000];
/** Phases in which a group goes on by itself. */
const GOES_ON: ReadonlySet<unknown> = new Set(["RollingOut", "Scaling"]);

/** What a reconciler has asked and read. */
interface Asked {
  /** When it sent its last probe, and when the last one was refused as it should be. */
  sentAt: number;
  answeredAt: number;
  /** It has had an answer, however late. */
  hasAnswer: boolean;
  isOpen: boolean;
  /** When it wrote that no answer was seen, with its question open. */
  unseenAt: number;
  /** By budget when it read a spec first of which its status does not tell, and which, until it has tried to write it. */
  readonly readAt: Map<string, { readonly at: number; readonly generation: number }>;
  readonly tried: Map<string, number | undefined>;
}

/** Calls `violated` with what happened, in words. */
export function createStatusSafety(options: StatusSafetyOptions) {
  const { violated, now, isQuiet, isReadForMore, areZonesSettled } = options;
  const byActor = new Map<string, Asked>();
  const budgets = new Map<string, KubeObject>();
  /** The group's status, when a zone or a pod last changed, and who first listed the zones after it, and when. */
  let group: KubeObject | undefined;
  let changedAt = -Infinity;
  let listed = { by: "", at: Infinity };

  function of(actor: string): Asked {
    const never = { sentAt: -Infinity, answeredAt: -Infinity, hasAnswer: false, isOpen: false, unseenAt: -Infinity };
    const found = byActor.get(actor) ?? { ...never, readAt: new Map(), tried: new Map() };
    byActor.set(actor, found);
    return found;
  }

  function onProbe(actor: string, text: string): void {
    const its = of(actor);
    const { dryRun, preconditions } = fieldsOf(dig(JSON.parse(text || "{}"), "deleteOptions"));
    if (!listOf(dryRun).includes("All") || !textOf(dig(preconditions, "uid")))
      violated(`${actor} asks the webhook by an eviction that may take effect: ${text}`);
    const ms = now() - its.answeredAt;
    if (ms < PROBED_MS && isQuiet()) violated(`${actor} asks the webhook again ${ms} ms after it has answered`);
    Object.assign(its, { sentAt: now(), isOpen: true });
  }

  function onBudgetStatus(actor: string, name: string, status: Fields): void {
    const its = of(actor);
    const generation = numberOf(status["observedGeneration"]);
    const isCurrent = generation === budgets.get(name)?.metadata.generation;
    if (isCurrent) its.tried.set(name, generation);
    // Somebody may have written another one meanwhile, which it has not read.
    if (isCurrent || (generation ?? 0) >= (its.readAt.get(name)?.generation ?? Infinity)) its.readAt.delete(name);
    const reason = textOf(dig(listOf(status["conditions"])[0], "reason"));
    if (reason === "NotSeen" && its.isOpen && now() - its.sentAt < PROBE_MS && isQuiet()) its.unseenAt = now();
  }

  /** What a budget says of itself, as it is stored: nothing that nobody knows, and no more than its spec allows. */
  function onStated(object: KubeObject, previous: KubeObject | undefined, actor: string): void {
    const isGuarded = (one: KubeObject | undefined): boolean =>
      listOf(dig(one, "status", "conditions")).some((condition) => dig(condition, "reason") === GUARDED);
    if (isGuarded(object) && !isGuarded(previous) && !of(actor).hasAnswer)
      violated(`${actor} says that a webhook guards the pods, which has not answered it`);
    const { maxUnavailable, podNamePartitionRegex } = fieldsOf(object["spec"]);
    const isOwn = numberOf(dig(object, "status", "observedGeneration")) === object.metadata.generation;
    const limit = numberOf(maxUnavailable);
    if (!isOwn || limit === undefined || podNamePartitionRegex !== undefined) return;
    for (const zone of listOf(dig(object, "status", "zones"))) {
      const allowed = numberOf(dig(zone, "disruptionsAllowed")) ?? 0;
      if (allowed > limit)
        violated(`${actor} says that ${allowed} evictions of ${textOf(dig(zone, "name"))} are allowed, of ${limit}`);
    }
  }

  /** Generations that it has read and not answered. */
  function onTick(actor: string): void {
    const { readAt } = of(actor);
    for (const [name, { at }] of readAt)
      if (now() - at > ANSWERED_MS && isQuiet()) {
        violated(`${actor} has read another spec of budget ${name} ${now() - at} ms ago, and says nothing of it`);
        readAt.delete(name);
      }
  }

  function onRead(actor: string): void {
    const { readAt, tried } = of(actor);
    for (const [name, { metadata, status }] of budgets) {
      const isKnown = [tried.get(name), numberOf(dig(status, "observedGeneration"))].includes(metadata.generation);
      if (isKnown) readAt.delete(name);
      else if (!readAt.has(name) && isQuiet()) readAt.set(name, { at: now(), generation: metadata.generation ?? 0 });
    }
  }

  /** Once all is settled, a reconciler that has read so says so. */
  function onZones(actor: string): void {
    if (listed.by !== actor) listed = { by: actor, at: now() };
    if (now() - listed.at < AGAIN_MS || now() - changedAt < SETTLED_MS || !isQuiet()) return;
    if (!group || isTrue(group, "Ready") || !areZonesSettled()) return;
    violated(`${actor} has read that all zones are settled, and the RolloutGroup says nothing of it`);
    listed.at = Infinity;
  }

  return {
    /** A request leaves a process. */
    onSent({ actor }: Caller, method: string, path: string, text: string): void {
      if (!actor.startsWith("reconciler-") || method === "GET") return;
      if (PROBE.test(path)) onProbe(actor, text);
      const [, budget] = BUDGET_STATUS.exec(path) ?? [];
      if (budget !== undefined) onBudgetStatus(actor, budget, fieldsOf(dig(JSON.parse(text), "status")));
      if (!RELEASED.test(path)) return;
      const its = of(actor);
      const isRelease = textOf(dig(JSON.parse(text), "spec", "holderIdentity")) === "";
      if (isRelease) its.readAt.clear();
      if (isRelease && now() - its.unseenAt < ENDS_MS)
        violated(`${actor} says that the webhook has not answered, which it does not wait for as it ends`);
    },

    /** A request was answered, also by a refusal. */
    onAnswered({ actor }: Caller, method: string, path: string, _: string, status: number): void {
      if (!actor.startsWith("reconciler-")) return;
      if (method === "GET" && ZONE_LIST.test(path) && status === 200) onZones(actor);
      if (method === "GET" && BUDGET_LIST.test(path)) {
        onTick(actor);
        if (status === 200 && !isReadForMore) onRead(actor);
      }
      if (method !== "POST" || !PROBE.test(path)) return;
      const its = of(actor);
      its.isOpen = false;
      if (status === REFUSED) its.hasAnswer = true;
      if (status === REFUSED && isQuiet()) its.answeredAt = now();
    },

    onEvent({ type, resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      const { name, namespace } = object.metadata;
      if (resource === DEFINITIONS && name === ROLLOUT_GROUPS) changedAt = now() + KNOWN_MS;
      if (namespace !== NAMESPACE) return;
      if (ZONES.has(resource)) [changedAt, listed] = [Math.max(changedAt, now()), { by: "", at: Infinity }];
      if (resource === ROLLOUT_GROUPS && name === GROUP) group = type === "DELETED" ? undefined : object;
      if (resource === BUDGETS && caller?.actor.startsWith("reconciler-")) onStated(object, previous, caller.actor);
      if (resource === BUDGETS && type === "DELETED") {
        budgets.delete(name);
        for (const { readAt } of byActor.values()) readAt.delete(name);
      }
      if (resource === BUDGETS && type !== "DELETED") budgets.set(name, object);
      if (resource !== ROLLOUT_GROUPS || type === "DELETED" || !caller?.actor.startsWith("reconciler-")) return;
      const { phase, progress } = fieldsOf(object["status"]);
      const end = textOf(dig(progress, "estimatedCompletionTime"));
      if (end !== undefined && !GOES_ON.has(phase))
        violated(`the RolloutGroup ${name} is ${String(phase)}, and is to end at ${end}`);
    },
  };
}
