/**
 * Judges what the webhook of downscales answers (§4.7-§4.10, §13.5). It decides within the review: what holds from before
 * the review arrives until it is answered is known to it.
 *
 *   arrives -> Lease -> lists of zones and pods -> reservation -> POST to the pods -> answer
 *      allowed: no other zone loses pods, has an admitted downscale or was scaled down too lately; reserved
 *      denied:  what it reserved is released soon, unless its calls fail
 */
import { dig, fieldsOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { type DownscaleKnowledge, UNREADY } from "./losses.ts";
import { BUDGETS, NAMESPACE, zoneOf } from "../names.ts";
import type { Caller, Review } from "../network.ts";
import { type Shape } from "../shape.ts";
import { isPinned, replicasOf } from "./stored.ts";

export interface DownscaleReviewOptions extends DownscaleKnowledge {
  readonly shape: Shape;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** True if no fault has befallen a call of webhooks since then, and none of them has stood still. */
  readonly isQuiet: (since: number) => boolean;
}

const PATH = "/admission/prepare-downscale";
/** By the selectors of StatefulSets; budgets select by fewer labels. */
const PODS_OF_ZONES = /\/pods\?.*labelSelector=[^&]*(?:,|%2C)name/;
/** Preparations are cancelled and reservations released within 3 s each. */
const UNDONE_MS = 10_000;
/** A review that is not answered may go on for so long. */
const OPEN_MS = 90_000;

interface Asked {
  readonly zone: string;
  readonly to: number;
  readonly arrivedAt: number;
  /** The API server waits for no answer any more; the webhook may not know it. */
  isGivenUp?: true;
}

/** A reservation that a denied downscale has left. */
interface Left {
  readonly budget: string;
  readonly key: string;
  readonly time: unknown;
  /** When its review arrived. A fault since then may have hidden the reservation from the webhook. */
  readonly arrivedAt: number;
  readonly deniedAt: number;
}

/** Calls `violated` with what happened, in words. */
export function createDownscaleReviews(options: DownscaleReviewOptions) {
  const { shape, violated, now, losses, setOf, listBudgets, isQuiet } = options;
  const { admittedBut, missedBut, wasInvalid, tooEarly } = options;
  /** By UID of a review. */
  const asked = new Map<string, Asked>();
  /** By zone when its last review was answered. */
  const answeredAt = new Map<string, number>();
  /** When webhooks last read the pods of the group's zones. */
  let podsReadAt = -Infinity;
  /** Reservations of zones that webhooks have made, by "budget key time", and when. */
  const reserved = new Map<string, number>();
  const left: Left[] = [];
  /** Since when the budget has been what it is. */
  let budgetSince = -Infinity;
  /** By zone when a webhook was last asked to prepare pods of it, and whether its label forbids that. */
  const mayPrepare = new Map<string, { readonly at: number; readonly isPinned: boolean }>();
  /** Zones that take the replicas of one another, or of a template, lose the same pods. */
  const isTheirs = shape.followers || shape.mirrored !== undefined;

  /** Why the zone should not shrink, by what holds since before its review. */
  function whyNot({ zone, to, arrivedAt }: Asked): string | undefined {
    const before = arrivedAt;
    const early = tooEarly(zone, "webhook", before);
    if (early !== undefined || !losses.takesServing(zone, to, before)) return early ?? admittedBut(zone, arrivedAt);
    if (wasInvalid(before)) return "its budget is invalid";
    const under = isTheirs ? to : undefined;
    return (
      losses.find({ but: zone, losses: UNREADY, under, before }) ??
      // Otherwise its own rollout may wait for this downscale.
      (losses.isUpdated(zone, before) ? losses.find({ but: zone, losses: ["is outdated"], before }) : undefined) ??
      missedBut(zone, to, arrivedAt) ??
      admittedBut(zone, arrivedAt)
    );
  }

  function onAllowed(review: Asked): void {
    const { zone, to, arrivedAt } = review;
    const what = `a webhook lets ${zone} shrink to ${to}`;
    const before = arrivedAt;
    const takesServing = losses.takesServing(zone, to, before);
    const why = whyNot(review);
    if (why !== undefined) violated(`${what} although ${why}`);
    if (podsReadAt < arrivedAt) violated(`${what} without having read the pods of its group`);
    const [budget, second] = listBudgets();
    const isJudged = budget && !second && budgetSince < before;
    if (isJudged && takesServing && !isReserved(budget, zone)) violated(`${what} without a reservation`);
  }

  function isReserved(budget: KubeObject, zone: string): boolean {
    const uid = setOf(zone)?.metadata.uid;
    const all = Object.entries(fieldsOf(dig(budget, "status", "disruptedPods")));
    return all.some(([key, one]) => zoneOfKey(key) === zone && dig(one, "uid") === uid);
  }

  /** True if another review of the zone was open meanwhile, or was answered: what is reserved may be its own. */
  const hadAnother = ({ zone, arrivedAt }: Asked): boolean =>
    (answeredAt.get(zone) ?? -Infinity) >= arrivedAt ||
    [...asked.values()].some((one) => one.zone === zone && now() - one.arrivedAt < OPEN_MS);

  function onDenied(review: Asked): void {
    const { zone, arrivedAt } = review;
    if (hadAnother(review)) return;
    for (const budget of listBudgets())
      for (const [key, one] of Object.entries(fieldsOf(dig(budget, "status", "disruptedPods")))) {
        const at = reserved.get(`${budget.metadata.name} ${key} ${String(dig(one, "time"))}`) ?? -Infinity;
        if (zoneOfKey(key) === zone && at >= arrivedAt)
          left.push({ budget: budget.metadata.name, key, time: dig(one, "time"), arrivedAt, deniedAt: now() });
      }
  }

  /** What was denied is undone by now, if no call has failed. */
  function judgeLeft(): void {
    while (left[0] && now() - left[0].deniedAt > UNDONE_MS) {
      const [{ budget, key, time, arrivedAt, deniedAt }] = left.splice(0, 1) as [Left];
      const stored = listBudgets().find(({ metadata }) => metadata.name === budget);
      const isLeft = dig(fieldsOf(dig(stored, "status", "disruptedPods"))[key], "time") === time;
      if (isLeft && isQuiet(arrivedAt))
        violated(`${key} is still reserved ${now() - deniedAt} ms after its downscale was denied`);
    }
  }

  function onBudget({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const specOf = (one: KubeObject | undefined): string => JSON.stringify(one?.["spec"]);
    if (type !== "MODIFIED" || specOf(object) !== specOf(previous)) budgetSince = now();
    if (!caller?.actor.startsWith("webhooks")) return;
    // One that another has replaced counts again once that is released.
    for (const [key, one] of Object.entries(fieldsOf(dig(object, "status", "disruptedPods")))) {
      const id = `${object.metadata.name} ${key} ${String(dig(one, "time"))}`;
      const zone = zoneOfKey(key);
      if (zone === undefined || reserved.has(id)) continue;
      reserved.set(id, now());
      const open = [...asked.values()].filter((review) => review.zone === zone && now() - review.arrivedAt < OPEN_MS);
      const why = open[0] && open.length === 1 ? whyNot(open[0]) : undefined;
      if (why !== undefined) violated(`${caller.actor} reserves ${key} although ${why}`);
    }
  }

  return {
    onArrival(path: string, sent: string): void {
      if (path !== PATH) return;
      const request = fieldsOf(dig(JSON.parse(sent), "request"));
      const zone = textOf(request["name"]) ?? "";
      const to = replicasToBe(request, setOf(zone));
      if (request["dryRun"] !== true) mayPrepare.set(zone, { at: now(), isPinned: isPinned(setOf(zone)) });
      if (shape.zones.includes(zone) && to !== undefined)
        asked.set(String(request["uid"]), { zone, to, arrivedAt: now() });
    },
    onReview({ path, sent, status, answer }: Pick<Review, "path" | "sent" | "status" | "answer">): void {
      if (path !== PATH || status !== 200) return;
      const uid = String(dig(JSON.parse(sent), "request", "uid"));
      const one = asked.get(uid);
      asked.delete(uid);
      if (!one || one.isGivenUp) return;
      if (dig(JSON.parse(answer), "response", "allowed") === true) onAllowed(one);
      else onDenied(one);
      answeredAt.set(one.zone, now());
    },
    /** A request leaves a process, also one to a pod. */
    onSent({ actor, call }: Caller): void {
      const [, pod = ""] = /^POST http:\/\/([^./]+)\./.exec(call) ?? [];
      const zone = zoneOf(pod);
      if (!actor.startsWith("webhooks") || !shape.zones.includes(zone)) return;
      const asks = mayPrepare.get(zone);
      if (asks === undefined || now() - asks.at > OPEN_MS)
        violated(`${actor} prepares ${pod}, which nobody has asked it to but in a dry run`);
      else if (asks.isPinned && isPinned(setOf(zone)))
        violated(`${actor} prepares ${pod}, whose zone must not shrink by its label`);
    },
    onRequest({ actor, sentAt = now() }: Caller, method: string, path: string): void {
      const isRead = method === "GET" && actor.startsWith("webhooks") && PODS_OF_ZONES.test(path);
      if (isRead) podsReadAt = Math.max(podsReadAt, sentAt);
    },
    onUnanswered(path: string, sent: string): void {
      const one = path === PATH ? asked.get(String(dig(JSON.parse(sent), "request", "uid"))) : undefined;
      if (one) one.isGivenUp = true;
    },
    onEvent(event: StoreEvent, caller: Caller | undefined): void {
      judgeLeft();
      if (event.resource === BUDGETS) onBudget(event, caller);
    },
  };
}

/** The replicas that a zone whose pods are to be prepared gets; undefined if nothing is judged about the request. */
function replicasToBe(request: ReturnType<typeof fieldsOf>, set: KubeObject | undefined): number | undefined {
  const { object, oldObject, dryRun, namespace } = request;
  const [from, to] = [oldObject, object].map((one) => numberOf(dig(one, "spec", "replicas")));
  const [old, next] = [oldObject, object].map((one) => textOf(dig(one, "metadata", "resourceVersion")));
  // It will be refused by its version.
  const isStale = next !== undefined && next !== "" && next !== old;
  if (dryRun === true || namespace !== NAMESPACE || isStale || !set) return undefined;
  if (set.metadata.labels?.["grafana.com/prepare-downscale"] !== "true" || isPinned(set)) return undefined;
  return from !== undefined && to !== undefined && to < from && from === replicasOf(set) ? to : undefined;
}

/** The zone that a reservation of a downscale is about: `zone-2+` is the pod of ordinal 2, and those after it. */
const zoneOfKey = (key: string): string | undefined => /^(.+)-\d+\+$/.exec(key)?.[1];
