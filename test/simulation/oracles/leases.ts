/**
 * Judges what reconcilers do with their Lease (§13.2) by what each has read of it: the requests as they leave, the
 * answers, and the Lease as it is stored.
 *
 *   read: held by another --> announce --> read it unchanged for its duration --> take
 *   held --renew, again and again; a refusal, or a look, tells that another has written it--> give back --> no write but Events
 */
import { dig, type Fields, fieldsOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { LEASES, NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import type { Process } from "../process.ts";

export interface LeaseSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly processes: () => readonly Process[];
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
/** A waiting process asks so often before it has to have said that it waits; it says so every 10 s at most. */
const [SILENT_READS, SAID_MS] = [3, 11_000];
/** An answer arrives within this time where no call is late. */
const ANSWER_MS = 20;
/** After an error a process pauses for a second before it asks again. */
const PAUSE_MS = 900;
/** A process that asks again after so long may have had no answer. */
const UNANSWERED_MS = 4000;

/** What a process knows of the Lease. */
interface Knowledge {
  /** The last renewal that it has read, when it read it first, and when it surely knew it. */
  renewal: string;
  readAt: number;
  knownAt: number;
  /** When its last question was sent; and the last one that was answered, and by what. */
  sentAt: number;
  askedAt: number;
  status: number;
  /** When another name was on it, as far as this process has read; Infinity without one. */
  lostAt: number;
  /** When its last write was refused. */
  refusedAt: number;
  /** When it last read it. */
  lookedAt: number;
  /** It was refused to give the Lease back, and has asked whose it is. */
  kept: "refused" | "read" | undefined;
  /** When it sent its last write. */
  writtenAt: number;
  /** Answers in a row by which another holds it, and nobody else waits. */
  silentReads: number;
  hasHeld: boolean;
  /** When it has sent that it gives the Lease back; undefined while it may have it. */
  releasedAt: number | undefined;
}

const nothing = (): Knowledge => ({
  renewal: "",
  readAt: Infinity,
  knownAt: Infinity,
  sentAt: -Infinity,
  askedAt: -Infinity,
  status: 0,
  lostAt: Infinity,
  refusedAt: -Infinity,
  lookedAt: -Infinity,
  kept: undefined,
  writtenAt: -Infinity,
  silentReads: 0,
  hasHeld: false,
  releasedAt: undefined,
});

/** Calls `violated` with what happened, in words. */
export function createLeaseSafety(options: LeaseSafetyOptions) {
  const { violated, now, processes, isQuiet } = options;
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

  /** True if it has ever stood still: from then on it may count no clock but its own. */
  const hasStoodStill = (actor: string): boolean =>
    (processes()
      .find(({ name }) => name === actor)
      ?.stoodStillMs(0) ?? 1) > 0;

  /** A question for the Lease was answered, or its answer is lost on the way. */
  function onRead({ actor, sentAt = 0 }: Caller, status: number): void {
    const its = of(actor);
    its.status = status;
    if (status !== 200 || !lease) return;
    its.askedAt = sentAt;
    its.lookedAt = now();
    const renewal = renewalOf(lease);
    if (its.renewal !== renewal) Object.assign(its, { renewal, readAt: now(), knownAt: Infinity });
    const holder = holderOf(lease);
    const isOther = holder !== "" && !isOf(actor, holder);
    its.lostAt = isOther ? Math.min(its.lostAt, now()) : Infinity;
    its.silentReads = isOther && successorOf(lease) === "" ? its.silentReads + 1 : 0;
  }

  /**
   * A process asks for the Lease again. It does so at once only if it got an answer: after any error it pauses, and
   * waits anew.
   */
  function onAsked(actor: string): void {
    const its = of(actor);
    const sinceMs = now() - its.sentAt;
    const hasRead = sinceMs < PAUSE_MS;
    its.sentAt = now();
    if (its.kept === "read") {
      if (!hasStoodStill(actor) && sinceMs < UNANSWERED_MS)
        violated(`${actor} does not give its Lease back, as it was refused once`);
      its.kept = undefined;
    } else if (its.kept === "refused") its.kept = "read";
    const holder = holderOf(lease);
    if (!hasRead || holder === "" || isOf(actor, holder)) {
      Object.assign(its, { knownAt: Infinity, silentReads: 0 });
      return;
    }
    its.knownAt = Math.min(its.knownAt, now());
    if (!lease || renewalOf(lease) !== its.renewal || hasStoodStill(actor)) return;
    const unchangedMs = its.askedAt - its.knownAt;
    // Whoever was just refused, as the Lease has changed, asks what has become of it.
    const wasRefused = its.refusedAt > its.askedAt;
    if (unchangedMs >= durationOf(lease) && !wasRefused)
      violated(`${actor} goes on to wait for ${holder}, which it has not seen renew its Lease for ${unchangedMs} ms`);
    if (!its.hasHeld && its.silentReads >= SILENT_READS && now() - its.writtenAt > SAID_MS)
      violated(`${actor} waits for ${holder}, and does not say so`);
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
    if (is === "" && isOf(actor, was)) Object.assign(its, { releasedAt: sentAt, kept: undefined });
    if (!isOf(actor, is)) return;
    Object.assign(its, { hasHeld: true, lostAt: Infinity, releasedAt: undefined });
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

  /** A write of the Lease leaves a process. */
  function onWrite({ actor }: Caller, method: string): void {
    const its = of(actor);
    // It has got the answer to its last question.
    Object.assign(its, { writtenAt: now(), knownAt: Math.min(its.knownAt, now()), kept: undefined });
    if (method === "POST" && its.status === 200) violated(`${actor} makes a Lease that it has read`);
  }

  /** A write of the Lease was answered. */
  function onWritten({ actor }: Caller, body: Fields, status: number): void {
    const its = of(actor);
    const isWaiting = !isOf(actor, textOf(dig(body, "spec", "holderIdentity")) ?? "");
    const isHolder = isOf(actor, holderOf(lease));
    if (status === 409 || status === 404) its.refusedAt = now();
    if (status === 409 && isWaiting && isHolder) its.kept = "refused";
    if (status === 200 && isWaiting && !its.hasHeld && successorOf(lease) === "")
      violated(`${actor} writes the Lease of ${holderOf(lease)}, and does not say that it waits`);
  }

  return {
    /** A request leaves a process. */
    onSent(caller: Caller, method: string, path: string, text = ""): void {
      const { actor, call } = caller;
      const limitMs = Number(/[?&]timeout=(-?\d+)ms/.exec(path)?.[1] ?? Infinity);
      if (limitMs <= 0) violated(`${actor} sends ${call} ${-limitMs} ms after its time was up`);
      if (PREPARATION.test(call) && now() >= (mayPrepareUntil.get(actor) ?? -Infinity))
        violated(`${actor} sends ${call} without the Lease of its group's downscales`);
      if (!actor.startsWith("reconciler-")) return;
      if (method === "GET" && READ.test(path)) onAsked(actor);
      else if (bodyOf(method, path, text)) onWrite(caller, method);
      else onSent(caller, method, path);
    },

    /** A request was answered, also by a refusal. */
    onAnswered(caller: Caller, method: string, path: string, text: string, status: number): void {
      if (!caller.actor.startsWith("reconciler-")) return;
      if (method === "GET" && READ.test(path)) onRead(caller, status);
      const body = bodyOf(method, path, text);
      if (body) onWritten(caller, body, status);
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

/** The Lease that a request writes; undefined if it writes none of that name. */
function bodyOf(method: string, path: string, text: string): Fields | undefined {
  if (method === "GET" || !WRITTEN.test(path)) return undefined;
  const body = fieldsOf(JSON.parse(text || "{}"));
  return dig(body, "metadata", "name") === NAME ? body : undefined;
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

/** Who says that it waits; "" if nobody does. */
const successorOf = (lease: KubeObject | undefined): string =>
  lease?.metadata.annotations?.["zonewise/successor"] ?? "";
