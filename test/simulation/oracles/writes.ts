/**
 * What each write of our processes carries: the version or the UID of what was judged, and of the reconciler a time
 * limit that ends while its Lease is its own. Judged from the requests alone.
 */
import { dig, fieldsOf, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { Caller } from "../network.ts";

export interface WriteSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /**
   * Machines stand still, their clocks with them: a holder learns of it by the time of an answer, which has whole
   * seconds. Until then the third of the Lease that is left must do.
   */
  readonly suspends: boolean;
}

/** Objects of which a part is written by others, too. */
const VERSIONED =
  /\/(?:statefulsets|nodes|bottlerocketshadows|rolloutgates|phasedrollouts|rolloutgroups|(?:mutating|validating)webhookconfigurations)\//;
/** Takes pods away, or decides which: under the Lease of the reconcilers alone. */
const FENCED = /^(?:PATCH .*\/statefulsets\/|DELETE .*\/pods\/)/;
const LEASE = /\/leases(?:\/|$)/;
const LEASE_NAME = "zonewise-reconciler";
/** A holder writes for so much of its Lease's duration after it sent its last renewal. */
const FENCED_SHARE = 2 / 3;
/** A time that such an answer does not show. */
const UNSEEN_MS = 2000;

/** Calls `violated` with what happened, in words. `onRequest` is told of requests that took effect. */
export function createWriteSafety({ violated, now, suspends }: WriteSafetyOptions) {
  /** Until when each reconciler may write. */
  const mayWriteUntil = new Map<string, number>();
  /** When each has given its Lease back; what it sent long before may arrive later. */
  const releasedAt = new Map<string, number>();

  /** Who holds each Lease, by the write that says so, and until when. */
  const leases = new Map<string, { readonly holder: string; readonly renewed: string; readonly until: number }>();

  /** Nobody takes a Lease before its time is over, counted from when its holder wrote it. */
  function onAnyLease({ actor, sentAt = 0 }: Caller, body: unknown): void {
    const [namespace = "", name = ""] = ["namespace", "name"].map((field) => textOf(dig(body, "metadata", field)));
    const key = `${namespace}/${name}`;
    const holder = textOf(dig(body, "spec", "holderIdentity")) ?? "";
    const renewed = textOf(dig(body, "spec", "renewTime")) ?? "";
    const before = leases.get(key);
    if (before && before.holder !== "" && holder !== "" && before.holder !== holder && now() < before.until)
      violated(`${actor} takes Lease ${name} from ${before.holder}, which has it for ${before.until - now()} ms more`);
    // What else is written on it, such as who waits, is no renewal: nor after somebody has changed its time.
    const isByOther = name === LEASE_NAME && !isHolder(actor, body);
    if (before?.holder === holder && (before.renewed === renewed || isByOther)) return;
    const seconds = numberOf(dig(body, "spec", "leaseDurationSeconds")) ?? 0;
    leases.set(key, { holder, renewed, until: sentAt + seconds * 1000 });
  }

  /** The Lease is written: a renewal, or its release. */
  function onLease({ actor, sentAt = 0 }: Caller, body: unknown): void {
    const seconds = numberOf(dig(body, "spec", "leaseDurationSeconds")) ?? 0;
    if (textOf(dig(body, "spec", "holderIdentity")) === "") return void releasedAt.set(actor, sentAt);
    if (!isHolder(actor, body)) return;
    releasedAt.delete(actor);
    mayWriteUntil.set(actor, Math.max(mayWriteUntil.get(actor) ?? 0, sentAt + seconds * 1000 * FENCED_SHARE));
  }

  function onFenced({ actor, call, sentAt = 0 }: Caller, query: string): void {
    const limitMs = Number(/\btimeout=(\d+)ms/.exec(query)?.[1] ?? Infinity);
    const released = releasedAt.get(actor) ?? Infinity;
    const isReleased = sentAt >= released;
    // Until its time limit is over, who sent it waits for the answer.
    if (!isReleased && released < Math.min(now(), sentAt + limitMs))
      violated(`${actor} has not waited for ${call} before it gave its Lease back`);
    const lateMs = sentAt + limitMs - (isReleased ? -Infinity : (mayWriteUntil.get(actor) ?? -Infinity));
    if (lateMs > (suspends ? UNSEEN_MS : 0))
      violated(`${actor} sends ${call} with a time limit ${lateMs} ms after its Lease may pass to another`);
  }

  function whyUnjudged(method: string, path: string, body: unknown): string | undefined {
    const { uid, resourceVersion } = fieldsOf(dig(body, "metadata"));
    const tested = listOf(body).some(
      (step) => dig(step, "op") === "test" && /resourceVersion/.test(String(dig(step, "path"))),
    );
    if (method === "PUT" || (method === "PATCH" && VERSIONED.test(path)))
      return textOf(resourceVersion) || tested ? undefined : "without the version that it has read";
    if (method === "PATCH" && /\/pods\//.test(path)) return textOf(uid) ? undefined : "without the UID of the pod";
    return undefined;
  }

  return {
    onRequest(caller: Caller, method: string, target: string, text: string): void {
      const { actor, call } = caller;
      if (method === "GET" || !/^(?:reconciler|webhooks|certificates|node-api)-/.test(actor)) return;
      const [path = "", query = ""] = target.split("?");
      const body: unknown = JSON.parse(text || "{}");
      const isReconciler = actor.startsWith("reconciler");
      if (LEASE.test(path)) onAnyLease(caller, body);
      if (isReconciler && LEASE.test(path) && dig(body, "metadata", "name") === LEASE_NAME) onLease(caller, body);
      if (isReconciler && FENCED.test(`${method} ${path}`)) onFenced(caller, query);
      const why = whyUnjudged(method, path, body);
      if (why !== undefined) violated(`${actor} sends ${call} ${why}: ${text}`);
    },
  };
}

const isHolder = (actor: string, body: unknown): boolean =>
  textOf(dig(body, "spec", "holderIdentity"))?.startsWith(`${actor}_`) === true;
