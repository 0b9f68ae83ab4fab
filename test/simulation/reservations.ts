/**
 * What must never happen to a budget's memory: a webhook reserves a pod only for an eviction or a deletion that may take effect. A dry
 * run takes nothing away, and so reserves nothing. And no reconciler removes what a webhook has reserved while it counts (§5.6): for
 * 2 minutes while there is the pod, or for 90 s until a downscale is stored. Judged from the reviews that reached
 * webhooks, and from the store.
 */
import { dig, fieldsOf, listOf, numberOf, textOf } from "../emulator/objects.ts";
import type { Store, StoreEvent } from "../emulator/store.ts";
import { BUDGETS, NAMESPACE, ordinalOf, zoneOf } from "./names.ts";
import type { Caller } from "./network.ts";
import { misjudgedMs, type Shape } from "./shape.ts";

export interface ReservationSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly shape: Pick<Shape, "skewMs">;
  readonly store: () => Pick<Store, "get">;
}

const PATHS: ReadonlySet<string> = new Set(["/admission/mutate-pod-eviction", "/admission/pod-deletion"]);
/** Longer than a webhook decides, stands still, and its write is on its way. */
const DECIDED_MS = 120_000;
/** For which the reservation of a pod counts, and that of a downscale. */
const [POD_MS, DOWNSCALE_MS] = [120_000, 90_000];
/** A webhook's reservation, and one that only keeps the place of an eviction. */
const [BY_WEBHOOK, BY_RESPONDER] = ["webhook_", "webhook_responder_"];

/** Calls `violated` with what happened, in words. */
export function createReservationSafety({ violated, now, shape, store }: ReservationSafetyOptions) {
  /** When an eviction or deletion of a pod last reached a webhook that was no dry run, and one that was. */
  const [wetAt, dryAt] = [new Map<string, number>(), new Map<string, number>()];

  /** Since when each entry is there. */
  const since = new Map<string, number>();

  /** True while it may still take effect, and nobody but who made it may remove it. */
  function counts(key: string, entry: unknown): boolean {
    const ageMs = now() - (since.get(keyOf(entry)) ?? -Infinity);
    const name = key.replace(/\+$/, "");
    const isPod = name === key;
    if (ageMs > (isPod ? POD_MS : DOWNSCALE_MS) - misjudgedMs(shape)) return false;
    const object = store().get(isPod ? "pods" : "statefulsets.apps", NAMESPACE, isPod ? name : zoneOf(name));
    if (object?.metadata.uid !== dig(entry, "uid")) return false;
    return isPod || (numberOf(dig(object, "spec", "replicas")) ?? 1) > ordinalOf(name);
  }

  /** An entry of the budget as a reconciler has written it. */
  function onEntry(key: string, before: unknown, after: unknown, actor: string): void {
    const by = byOf(before);
    if (by.startsWith(BY_RESPONDER) || !counts(key, before)) return;
    if (after === undefined && by.startsWith(BY_WEBHOOK)) violated(`${actor} frees the reservation of ${key} by ${by}`);
    if (byOf(after).startsWith(BY_RESPONDER))
      violated(`${actor} takes the place of the reservation of ${key} by ${by}`);
  }

  return {
    /** A review reaches a webhook server. */
    onArrival(path: string, review: string): void {
      if (!PATHS.has(path)) return;
      const request = fieldsOf(dig(JSON.parse(review), "request"));
      (isDryRun(request) ? dryAt : wetAt).set(textOf(request["name"]) ?? "", now());
    },

    onEvent({ resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      if (resource !== BUDGETS) return;
      const [before, after] = [previous, object].map((one) => fieldsOf(dig(one, "status", "disruptedPods")));
      for (const one of Object.values(after ?? {})) if (!since.has(keyOf(one))) since.set(keyOf(one), now());
      if (caller?.actor.startsWith("reconciler"))
        for (const [key, one] of Object.entries(before ?? {})) onEntry(key, one, after?.[key], caller.actor);
      if (caller?.actor.startsWith("webhooks") !== true) return;
      for (const [pod, { uid }] of Object.entries(after ?? {}).map(([name, one]) => [name, fieldsOf(one)] as const)) {
        // A zone that shrinks is reserved, too.
        if (pod.endsWith("+") || uid === dig(before?.[pod], "uid")) continue;
        const isDry = dryAt.has(pod) && now() - (wetAt.get(pod) ?? -Infinity) > DECIDED_MS;
        if (isDry) violated(`${caller.actor} reserves ${pod}, which was only tried to be taken in a dry run`);
      }
    },
  };
}

const isDryRun = (request: ReturnType<typeof fieldsOf>): boolean =>
  request["dryRun"] === true || listOf(dig(request["object"], "deleteOptions", "dryRun")).includes("All");

const byOf = (entry: unknown): string => textOf(dig(entry, "by")) ?? "";
const keyOf = (entry: unknown): string => `${String(dig(entry, "uid"))} ${byOf(entry)} ${String(dig(entry, "time"))}`;
