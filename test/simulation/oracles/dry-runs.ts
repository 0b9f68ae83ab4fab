/** A dry run takes nothing: a webhook reserves a pod only if somebody has asked it to let that pod go. */
import { dig, fieldsOf, listOf, textOf } from "../../emulator/objects.ts";
import type { StoreEvent } from "../../emulator/store.ts";
import { BUDGETS, EVICTION_PATHS, LEASES, NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import { downscaleOf, reservedOn } from "./stored.ts";

interface DryRunSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
}

const PATHS: ReadonlySet<string> = new Set([...EVICTION_PATHS, "/admission/pod-deletion"]);
/** Longer than a webhook decides, stands still, and its write is on its way. */
const DECIDED_MS = 120_000;

/** Calls `violated` with what happened, in words. */
export function createDryRunSafety({ violated, now }: DryRunSafetyOptions) {
  /** By name of a pod when a webhook was last asked to let it go. */
  const askedAt = new Map<string, number>();
  return {
    /** A review reaches a webhook server. */
    onArrival(path: string, review: string): void {
      const request = fieldsOf(dig(JSON.parse(review), "request"));
      const isDry =
        request["dryRun"] === true || listOf(dig(request["object"], "deleteOptions", "dryRun")).includes("All");
      if (PATHS.has(path) && !isDry) askedAt.set(textOf(request["name"]) ?? "", now());
    },
    onEvent({ resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      if (resource !== BUDGETS && resource !== LEASES) return;
      if (object.metadata.namespace !== NAMESPACE || !caller?.actor.startsWith("webhooks")) return;
      const [before, after] = [reservedOn(previous), reservedOn(object)];
      for (const [key, entry] of Object.entries(after)) {
        const isNew = !downscaleOf(key, entry) && dig(before[key], "uid") !== dig(entry, "uid");
        if (isNew && now() - (askedAt.get(key) ?? -Infinity) > DECIDED_MS)
          violated(`${caller.actor} reserves ${key}, which nobody has asked it to let go but in a dry run`);
      }
    },
  };
}
