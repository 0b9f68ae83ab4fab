/**
 * Judges what is done under Leases: nobody takes one before its time is over, counted from when its holder wrote it; a
 * reconciler takes pods away, or decides which, only within the time of its own; and pods are prepared within the time of
 * the Lease of their group's downscales. Judged from the requests alone.
 */
import { dig, numberOf, textOf } from "../../emulator/objects.ts";
import type { Caller } from "../network.ts";

interface LeaseSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /**
   * Machines stand still, their clocks with them: a holder learns of it by the time of an answer, which has whole
   * seconds. Until then the third of the Lease that is left must do.
   */
  readonly suspends: boolean;
}

const LEASE = /\/leases(?:[/?]|$)/;
/** The reconcilers', and that of a group's downscales. */
const [RECONCILERS, DOWNSCALES] = ["zonewise-reconciler", /^zonewise-downscale-/];
/** Takes pods away, or decides which. */
const FENCED = /^(?:PATCH .*\/statefulsets\/|DELETE .*\/pods\/)/;
const PREPARATION = /^(?:POST|DELETE) http:\/\/.*\/prepare$/;
/** Events are written until the process ends, and it may ask for the Lease again. */
const STILL_SENT = /\/events(?:[/?]|$)|\/leases(?:\/zonewise-reconciler)?(?:\?|$)/;
/** A holder writes for so much of its Lease's duration after it sent its last renewal. */
const FENCED_SHARE = 2 / 3;
/** A time that such an answer does not show. */
const UNSEEN_MS = 2000;

const limitOf = (path: string): number => Number(/\btimeout=(-?\d+)ms/.exec(path)?.[1] ?? Infinity);
const holderOf = (lease: unknown): string => textOf(dig(lease, "spec", "holderIdentity")) ?? "";
const durationOf = (lease: unknown): number => 1000 * (numberOf(dig(lease, "spec", "leaseDurationSeconds")) ?? 0);
const isHolder = (actor: string, lease: unknown): boolean => holderOf(lease).startsWith(`${actor}_`);

/** Calls `violated` with what happened, in words. */
export function createLeaseSafety({ violated, now, suspends }: LeaseSafetyOptions) {
  /** Who holds each Lease, by the write that says so, and until when. */
  const leases = new Map<string, { readonly holder: string; readonly renewed: string; readonly until: number }>();
  /** Until when each reconciler may write. */
  const mayWriteUntil = new Map<string, number>();
  /** When each has given its Lease back; what it sent long before may arrive later. */
  const releasedAt = new Map<string, number>();
  /** Until when each process has the Lease of downscales. */
  const mayPrepareUntil = new Map<string, number>();

  function onLease({ actor, sentAt = 0 }: Caller, lease: unknown): void {
    const [namespace = "", name = ""] = ["namespace", "name"].map((field) => textOf(dig(lease, "metadata", field)));
    const key = `${namespace}/${name}`;
    const [holder, renewed] = [holderOf(lease), textOf(dig(lease, "spec", "renewTime")) ?? ""];
    const before = leases.get(key);
    if (before && before.holder !== "" && holder !== "" && before.holder !== holder && now() < before.until)
      violated(`${actor} takes Lease ${name} from ${before.holder}, which has it for ${before.until - now()} ms more`);
    if (DOWNSCALES.test(name)) mayPrepareUntil.set(actor, holder === "" ? -Infinity : sentAt + durationOf(lease));
    if (name === RECONCILERS && holder === "" && before?.holder.startsWith(`${actor}_`)) releasedAt.set(actor, sentAt);
    if (name === RECONCILERS && isHolder(actor, lease)) {
      releasedAt.delete(actor);
      mayWriteUntil.set(actor, Math.max(mayWriteUntil.get(actor) ?? 0, sentAt + durationOf(lease) * FENCED_SHARE));
    }
    // What else is written on it, such as who waits, is no renewal: nor after somebody has changed its time.
    const isByOther = name === RECONCILERS && !isHolder(actor, lease);
    if (before?.holder === holder && (before.renewed === renewed || isByOther)) return;
    leases.set(key, { holder, renewed, until: sentAt + durationOf(lease) });
  }

  function onFenced({ actor, call, sentAt = 0 }: Caller, path: string): void {
    const limitMs = limitOf(path);
    const released = releasedAt.get(actor) ?? Infinity;
    const isReleased = sentAt >= released;
    // Until its time limit is over, who sent it waits for the answer.
    if (!isReleased && released < Math.min(now(), sentAt + limitMs))
      violated(`${actor} has not waited for ${call} before it gave its Lease back`);
    const lateMs = sentAt + limitMs - (isReleased ? -Infinity : (mayWriteUntil.get(actor) ?? -Infinity));
    if (lateMs > (suspends ? UNSEEN_MS : 0))
      violated(`${actor} sends ${call} with a time limit ${lateMs} ms after its Lease may pass to another`);
  }

  return {
    /** A request leaves a process. */
    onSent({ actor, call }: Caller, method: string, path: string): void {
      const limitMs = limitOf(path);
      if (limitMs <= 0) violated(`${actor} sends ${call} ${-limitMs} ms after its time was up`);
      if (PREPARATION.test(call) && now() >= (mayPrepareUntil.get(actor) ?? -Infinity))
        violated(`${actor} sends ${call} without the Lease of its group's downscales`);
      if (method !== "GET" && !STILL_SENT.test(path) && releasedAt.has(actor))
        violated(`${actor} sends ${call} after it has given its Lease back`);
    },

    /** A request took effect. */
    onRequest(caller: Caller, method: string, path: string, text: string): void {
      const { actor } = caller;
      if (method === "GET" || !/^(?:reconciler|webhooks|certificates|node-api)-/.test(actor)) return;
      if (actor.startsWith("reconciler-") && FENCED.test(`${method} ${path}`)) onFenced(caller, path);
      if (LEASE.test(path)) onLease(caller, JSON.parse(text || "{}"));
    },
  };
}
