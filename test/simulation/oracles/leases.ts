/**
 * Judges what reconcilers do under their Lease (§13.2) by what each has read of it: the requests as they leave, the
 * answers, and the Lease as it is stored. Nobody takes it from one who may still have it, nobody writes over what others
 * have written, and nobody writes without it.
 */
import { dig, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { LEASES, NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";

export interface LeaseSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** True while no call is lost, late or refused. */
  readonly isQuiet: () => boolean;
}

const NAME = "zonewise-reconciler";
const READ = /\/leases\/zonewise-reconciler(?:\?|$)/;
const WRITTEN = /\/leases(?:\/zonewise-reconciler)?(?:\?|$)/;
/** The Lease of a group's downscales, under which pods are prepared, and a call that does so or undoes it. */
const DOWNSCALES = /^zonewise-downscale-/;
const PREPARATION = /^(?:POST|DELETE) http:\/\/.*\/prepare$/;
/** Events are written until the process ends. */
const EVENTS = /\/events(?:\/|\?|$)/;
/** Of a Lease that does not say it. */
const DURATION_MS = 15_000;
/** An answer arrives within this time where no call is late. */
const ANSWER_MS = 20;

/** What a process knows of the Lease. */
interface Knowledge {
  /** The last renewal that it has read, and when it read it first. */
  renewal: string;
  readAt: number;
  /** When another name was on it, as far as this process has read; Infinity without one. */
  lostAt: number;
  /** When its last write was refused. */
  refusedAt: number;
  /** When it last read it. */
  lookedAt: number;
  /** When it has sent that it gives the Lease back; undefined while it may have it. */
  releasedAt: number | undefined;
}

const nothing = (): Knowledge => ({
  renewal: "",
  readAt: Infinity,
  lostAt: Infinity,
  refusedAt: -Infinity,
  lookedAt: -Infinity,
  releasedAt: undefined,
});

/** Calls `violated` with what happened, in words. */
export function createLeaseSafety(options: LeaseSafetyOptions) {
  const { violated, now, isQuiet } = options;
  const known = new Map<string, Knowledge>();
  /** Until when each process has the Lease of downscales, as it has written it. */
  const mayPrepareUntil = new Map<string, number>();
  /** As it is stored. */
  let lease: KubeObject | undefined;
  /** Who wrote it last, and when. */
  let written = { by: "", at: -Infinity };

  function of(actor: string): Knowledge {
    const found = known.get(actor) ?? nothing();
    known.set(actor, found);
    return found;
  }

  /** A question for the Lease was answered. */
  function onRead({ actor }: Caller, status: number): void {
    const its = of(actor);
    if (status !== 200 || !lease) return;
    its.lookedAt = now();
    const renewal = renewalOf(lease);
    if (its.renewal !== renewal) Object.assign(its, { renewal, readAt: now() });
    const holder = holderOf(lease);
    its.lostAt = holder !== "" && !isOf(actor, holder) ? Math.min(its.lostAt, now()) : Infinity;
  }

  /** Somebody has written the Lease. */
  function onStored({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const before = written;
    written = { by: caller?.actor ?? "", at: now() };
    lease = type === "DELETED" ? undefined : object;
    if (!lease || !caller?.actor.startsWith("reconciler-")) return;
    const { actor, sentAt = 0 } = caller;
    const its = of(actor);
    const [was, is] = [holderOf(previous), holderOf(lease)];
    const isRenewal = isOf(actor, was) && (is === "" || tenureOf(previous) === tenureOf(lease));
    if (isRenewal && before.by !== actor && Math.max(its.refusedAt, its.lookedAt) < before.at)
      violated(`${actor} writes its Lease over what ${before.by} has written, of which nothing has told it`);
    if (is === "" && isOf(actor, was)) its.releasedAt = sentAt;
    if (!isOf(actor, is)) return;
    Object.assign(its, { lostAt: Infinity, releasedAt: undefined });
    if (was === "" || was === is || !previous) return;
    const unchangedMs = sentAt - its.readAt;
    if (its.renewal === renewalOf(previous) && unchangedMs < durationOf(previous))
      violated(`${actor} takes the Lease of ${was}, which it has seen for ${unchangedMs} ms only`);
  }

  function onSent({ actor, call }: Caller, method: string, path: string): void {
    const its = of(actor);
    if (EVENTS.test(path)) return;
    // A tick that has begun may read on: nothing comes of it.
    if (its.releasedAt !== undefined && method !== "GET")
      violated(`${actor} sends ${call} after it has given its Lease back`);
    if (method !== "GET" && now() - its.lostAt > ANSWER_MS && isQuiet())
      violated(`${actor} sends ${call} after it has read that another has the Lease`);
  }

  return {
    /** A request leaves a process. */
    onSent(caller: Caller, method: string, path: string, text = ""): void {
      const { actor, call } = caller;
      const limitMs = Number(/[?&]timeout=(-?\d+)ms/.exec(path)?.[1] ?? Infinity);
      if (limitMs <= 0) violated(`${actor} sends ${call} ${-limitMs} ms after its time was up`);
      if (PREPARATION.test(call) && now() >= (mayPrepareUntil.get(actor) ?? -Infinity))
        violated(`${actor} sends ${call} without the Lease of its group's downscales`);
      if (actor.startsWith("reconciler-") && !isOfLease(method, path, text)) onSent(caller, method, path);
    },

    /** A request was answered, also by a refusal. */
    onAnswered(caller: Caller, method: string, path: string, text: string, status: number): void {
      if (!caller.actor.startsWith("reconciler-")) return;
      if (!isOfLease(method, path, text)) return;
      if (method === "GET") onRead(caller, status);
      else if (status === 409 || status === 404) of(caller.actor).refusedAt = now();
    },

    onEvent(event: StoreEvent, caller: Caller | undefined): void {
      const { namespace, name } = event.object.metadata;
      if (event.resource !== LEASES || namespace !== NAMESPACE) return;
      if (name === NAME) onStored(event, caller);
      if (!DOWNSCALES.test(name) || !caller) return;
      const { sentAt = 0, actor } = caller;
      mayPrepareUntil.set(actor, holderOf(event.object) === "" ? -Infinity : sentAt + durationOf(event.object));
    },
  };
}

/** True of a request that reads or writes this Lease. */
function isOfLease(method: string, path: string, text: string): boolean {
  if (method === "GET") return READ.test(path);
  return WRITTEN.test(path) && dig(JSON.parse(text || "{}"), "metadata", "name") === NAME;
}

const holderOf = (lease: KubeObject | undefined): string => textOf(dig(lease, "spec", "holderIdentity")) ?? "";
const isOf = (actor: string, holder: string): boolean => holder.startsWith(`${actor}_`);
const durationOf = (lease: KubeObject): number =>
  1000 * (numberOf(dig(lease, "spec", "leaseDurationSeconds")) ?? 0) || DURATION_MS;
/** Since when its holder has it. */
const tenureOf = (lease: KubeObject | undefined): unknown => dig(lease, "spec", "acquireTime");
/** What a renewal changes. */
const renewalOf = (lease: KubeObject): string =>
  ["holderIdentity", "acquireTime", "renewTime", "leaseTransitions"]
    .map((field) => String(dig(lease, "spec", field)))
    .join(" ");
