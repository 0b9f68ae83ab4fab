/**
 * What must never happen to a budget's memory (§5.6, §5.11): a webhook reserves a pod only for an eviction or a deletion
 * that may take effect and is of this pod, and what is reserved stays until it is over. Judged from the reviews that
 * reached webhooks, and from the store.
 *
 *   reserved -- its pod is gone, its zone is stored smaller, or its time is over --> may go
 *            -- the rollout could not delete the pod, or nobody shrinks the zone --> its own process takes it back
 */
import { dig, fieldsOf, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { BUDGET, BUDGETS, EVICTION_PATHS, zoneOf } from "../names.ts";
import type { Caller } from "../network.ts";
import { misjudgedMs, type Shape } from "../shape.ts";
import { isOrphan, reservedOn } from "./stored.ts";

export interface ReservationSafetyOptions {
  readonly shape: Pick<Shape, "skewMs" | "evictions">;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** The pod, or the StatefulSet, as it is stored. */
  readonly podOf: (name: string) => KubeObject | undefined;
  readonly setOf: (name: string) => KubeObject | undefined;
}

interface Entry {
  readonly uid: string;
  readonly by: string;
  /** When it was made, as it says. */
  readonly at: number;
}

const PATHS: ReadonlySet<string> = new Set([...EVICTION_PATHS, "/admission/pod-deletion"]);
/** Longer than a webhook decides, stands still, and its write is on its way. */
const DECIDED_MS = 120_000;
/** For which what is reserved for a pod, and for a downscale, counts. */
const [LASTS_MS, DOWNSCALE_LASTS_MS] = [120_000, 90_000];
/** No clock is that wrong: whoever reserves writes the present in the place of such a time. */
const AHEAD_MS = 300_000;
/** In which the rollout and an eviction have no pod in common, as the later of the two counts. */
const NOT_SHARED_MS = 15_000;
/** In which a reconciler that runs takes away what is over. */
const TIDIED_MS = 60_000;
/** Of processes that answer evictions. */
const EVICTION = "webhook_";

/** The API server refuses a deletion before it looks at it. */
const [THROTTLED, UNSAID] = ["throttled at reconciler DELETE pods", "serverError at reconciler DELETE pods"];
const POD = /\/pods\/[^/?]+(?:\?|$)/;

const preconditionOf = (body: string): string | undefined =>
  textOf(dig(JSON.parse(body || "{}"), "preconditions", "uid"));

const entriesOf = (budget: KubeObject | undefined): ReadonlyMap<string, Entry> =>
  new Map(
    Object.entries(reservedOn(budget)).map(([key, entry]) => {
      const [uid = "", by = "", time = ""] = ["uid", "by", "time"].map((field) => textOf(dig(entry, field)));
      return [key, { uid, by, at: Date.parse(time) || 0 }];
    }),
  );

/** Calls `violated` with what happened, in words. */
export function createReservationSafety({ shape, violated, now, podOf, setOf }: ReservationSafetyOptions) {
  /** "pod UID", or "pod" for whatever pod has the name: when somebody last asked a webhook to let it go. */
  const askedAt = new Map<string, number>();
  /** By key of a downscale what a webhook had reserved before for the same one. */
  const earlier = new Map<string, Entry>();
  /** The same by a pod that the rollout takes over: a webhook has let it go, and that may still take effect. */
  const relied = new Map<string, Entry>();
  /** "process UID" of the pods whose deletion was sent, and not refused. */
  const deleting = new Set<string>();
  let lastDeletion = "";
  /** An error of the server is answered to a deletion that may have taken effect. */
  let isUnsaid = false;
  /** By `placeOf` since when what is reserved has been over. */
  const overSince = new Map<string, number>();
  /** The same of downscales that were stored: who grows the zone again does not bring them back. */
  const stored = new Set<string>();
  let entries: ReadonlyMap<string, Entry> = new Map();

  const isOver = (key: string, { at }: Entry): boolean =>
    now() - at > (key.endsWith("+") ? DOWNSCALE_LASTS_MS : LASTS_MS) - misjudgedMs(shape);

  /** What it is about is still there, and has not become what it was reserved for. */
  function isLeft(key: string, { uid }: Entry): boolean {
    const [, zone, from] = /^(.+)-(\d+)\+$/.exec(key) ?? [];
    const pod = zone === undefined ? podOf(key) : undefined;
    if (zone === undefined) return pod?.metadata.uid === uid && !isOrphan(pod, setOf(zoneOf(key)));
    const set = setOf(zone);
    return set?.metadata.uid === uid && Number(dig(set, "spec", "replicas") ?? 1) > Number(from);
  }

  const counts = (key: string, entry: Entry): boolean =>
    !isOver(key, entry) && !stored.has(placeOf(key, entry)) && isLeft(key, entry);
  const wasAsked = (what: string): boolean => now() - (askedAt.get(what) ?? -Infinity) <= DECIDED_MS;

  function onReserved(key: string, entry: Entry, before: Entry | undefined, actor: string): void {
    if (key.endsWith("+")) {
      if (before?.uid !== entry.uid || !before.by.startsWith(EVICTION)) earlier.delete(key);
      else if (before.by !== entry.by) earlier.set(key, before);
      return;
    }
    if (before?.uid !== entry.uid) relied.delete(key);
    else if (before.by.startsWith(EVICTION) && before.by !== entry.by) relied.set(key, before);
    const isTheirs = before?.uid === entry.uid && before.by.startsWith(EVICTION) !== entry.by.startsWith(EVICTION);
    if (isTheirs && entry.at - before.at < NOT_SHARED_MS)
      violated(`${actor} reserves ${key} ${entry.at - before.at} ms after ${before.by} has`);
    const isAsked = wasAsked(key) || wasAsked(`${key} ${entry.uid}`);
    if (actor.startsWith("webhooks") && before?.uid !== entry.uid && !isAsked)
      violated(`${actor} reserves ${key}, which nobody has asked it to let go but in a dry run, or as another pod`);
  }

  function onReleased(key: string, entry: Entry, actor: string): void {
    const whole = earlier.get(key);
    earlier.delete(key);
    if (whole && counts(key, whole) && whole.by !== entry.by)
      violated(`${actor} takes ${key} back, which a webhook has reserved before`);
    const earlierOne = relied.get(key);
    relied.delete(key);
    if (earlierOne?.uid === entry.uid && counts(key, earlierOne))
      violated(`${actor} takes ${key} back, which ${earlierOne.by} has let go before`);
    if (!counts(key, entry)) return;
    if (deleting.has(`${actor} ${entry.uid}`))
      violated(`${actor} forgets ${key}, whose deletion it has sent, and which may still take effect`);
    const isOwn = entry.by.includes(`${actor}_`);
    const isForGood = !key.endsWith("+") && entry.by.startsWith(EVICTION);
    if (!isOwn || isForGood) violated(`${actor} forgets that ${key} is reserved by ${entry.by}`);
  }

  return {
    /** A review reaches a webhook server. */
    onArrival(path: string, review: string): void {
      if (!PATHS.has(path)) return;
      const request = fieldsOf(dig(JSON.parse(review), "request"));
      if (isDryRun(request)) return;
      const name = textOf(request["name"]) ?? "";
      const uid = textOf(dig(request, "object", "deleteOptions", "preconditions", "uid"));
      askedAt.set(uid === undefined ? name : `${name} ${uid}`, now());
    },

    /** A request leaves a process. */
    onSent({ actor }: Caller, method: string, path: string, body: string): void {
      if (method !== "DELETE" || !POD.test(path)) return;
      lastDeletion = `${actor} ${preconditionOf(body)}`;
      deleting.add(lastDeletion);
    },
    /** A fault has befallen a call, by its words. */
    onFault(cell: string): void {
      if (cell.startsWith(THROTTLED)) deleting.delete(lastDeletion);
      if (cell.startsWith(UNSAID)) isUnsaid = true;
    },
    /** The API server answers: what it refuses takes no effect. */
    onAnswered({ actor }: Caller, method: string, path: string, body: string, status: number): void {
      if (method !== "DELETE" || !POD.test(path)) return;
      // Also that it could not ask a webhook, if no fault has made it say so.
      if (status >= 400 && !isUnsaid) deleting.delete(`${actor} ${preconditionOf(body)}`);
      isUnsaid = false;
    },

    onEvent({ type, resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      if (resource === "statefulsets.apps")
        for (const [key, entry] of entries)
          if (key.endsWith("+") && key.startsWith(`${object.metadata.name}-`) && !isLeft(key, entry))
            stored.add(placeOf(key, entry));
      if (resource !== BUDGETS) return;
      if (object.metadata.name === BUDGET) entries = type === "DELETED" ? new Map() : entriesOf(object);
      if (type !== "MODIFIED" || !/^(?:webhooks|reconciler)/.test(caller?.actor ?? "")) return;
      const { actor = "" } = caller ?? {};
      const [before, after] = [entriesOf(previous), entriesOf(object)];
      for (const [key, entry] of after)
        if (!isSame(entry, before.get(key))) onReserved(key, entry, before.get(key), actor);
      const isAdded = [...after.keys()].some((key) => !before.has(key));
      const [ahead] = [...after].find(([, { at }]) => at - now() > AHEAD_MS + 2 * misjudgedMs(shape)) ?? [];
      if (isAdded && ahead !== undefined)
        violated(`${actor} writes that ${ahead} is reserved from a time far ahead on`);
      for (const [key, entry] of before) if (after.get(key)?.uid !== entry.uid) onReleased(key, entry, actor);
    },

    /** Looks for what is reserved although it has been over for longer than no reconciler may run. */
    look(silentMs: number): void {
      // Nobody tidies a Lease: what is over counts for nobody there, and goes with the next write.
      if (shape.evictions?.older) return;
      for (const [key, entry] of entries) {
        const place = placeOf(key, entry);
        if (counts(key, entry)) overSince.delete(place);
        else if (!overSince.has(place)) overSince.set(place, now());
        const ms = now() - (overSince.get(place) ?? Infinity);
        if (ms <= silentMs + TIDIED_MS) continue;
        violated(`${key} is still reserved by ${entry.by} ${ms} ms after that is over`);
        overSince.set(place, now());
      }
    },
  };
}

const placeOf = (key: string, { uid, at }: Entry): string => `${key} ${uid} ${at}`;
const isSame = (one: Entry, other: Entry | undefined): boolean =>
  one.uid === other?.uid && one.by === other.by && one.at === other.at;

/** True of a review that takes nothing, as its request or the Eviction says. */
export const isDryRun = (request: ReturnType<typeof fieldsOf>): boolean =>
  request["dryRun"] === true || listOf(dig(request["object"], "deleteOptions", "dryRun")).includes("All");
