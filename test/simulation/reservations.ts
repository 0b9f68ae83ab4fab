/**
 * What must never happen to a budget's memory: a webhook reserves a pod only for an eviction or a deletion that may take effect. A dry
 * run takes nothing away, and so reserves nothing. Judged from the reviews that reached webhooks, and from the store.
 */
import { dig, fieldsOf, listOf, textOf } from "../emulator/objects.ts";
import type { StoreEvent } from "../emulator/store.ts";
import { BUDGETS } from "./names.ts";
import type { Caller } from "./network.ts";

export interface ReservationSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
}

const PATHS: ReadonlySet<string> = new Set(["/admission/mutate-pod-eviction", "/admission/pod-deletion"]);
/** Longer than a webhook decides, stands still, and its write is on its way. */
const DECIDED_MS = 120_000;

/** Calls `violated` with what happened, in words. */
export function createReservationSafety({ violated, now }: ReservationSafetyOptions) {
  /** When an eviction or deletion of a pod last reached a webhook that was no dry run, and one that was. */
  const [wetAt, dryAt] = [new Map<string, number>(), new Map<string, number>()];

  return {
    /** A review reaches a webhook server. */
    onArrival(path: string, review: string): void {
      if (!PATHS.has(path)) return;
      const request = fieldsOf(dig(JSON.parse(review), "request"));
      (isDryRun(request) ? dryAt : wetAt).set(textOf(request["name"]) ?? "", now());
    },

    onEvent({ resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      if (resource !== BUDGETS || caller?.actor.startsWith("webhooks") !== true) return;
      const [before, after] = [previous, object].map((one) => fieldsOf(dig(one, "status", "disruptedPods")));
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
