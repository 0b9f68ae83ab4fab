/**
 * Judges what a reconciler has read and confirmed before it deletes a pod of a zone (§1.5.8, §1.7):
 *
 *   list of the StatefulSets -- at most 1 s --> write without content --> deletion --> list --> deletion --> ...
 *                            -- longer -------> write without content --> list --> deletion
 */
import type { Caller } from "./network.ts";
import type { Process } from "./process.ts";

interface ReadSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly processes: () => readonly Process[];
  /** Monotonic clocks stop with their machines: what was read long ago seems recent. */
  readonly suspends: boolean;
}

/** Milliseconds for which what was listed is recent enough for the first pod. */
const FRESH_MS = 1000;
/** Milliseconds from the write without content to the last deletion: a batch lasts 30 s, and its last call 10 s. */
const BATCH_MS = 40_000;
/** In which a process may have stood still. */
const STANDS_MS = 120_000;

const LIST = /^GET \/apis\/apps\/v1\/(?:namespaces\/[^/]+\/)?statefulsets(?:\?|$)/;
const CONFIRMED = /^PATCH .*\/statefulsets\/([^/?]+)\/status/;
const DELETED = /^DELETE .*\/pods\/([^/?]+)-\d+(?:\?|$)/;

interface Acts {
  /** When its last list of StatefulSets was sent. */
  listedAt: number;
  /** By StatefulSet when its last such write took effect, and how old its last list was then. */
  readonly confirmed: Map<string, { readonly at: number; readonly listedMs: number }>;
  /** By StatefulSet when the last deletion of one of its pods took effect. */
  readonly deletedAt: Map<string, number>;
}

/** Calls `violated` with what happened, in words. `onRequest` is told of requests that took effect. */
export function createReadSafety({ violated, now, processes, suspends }: ReadSafetyOptions) {
  const byActor = new Map<string, Acts>();

  function actsOf(actor: string): Acts {
    const found = byActor.get(actor) ?? { listedAt: -Infinity, confirmed: new Map(), deletedAt: new Map() };
    byActor.set(actor, found);
    return found;
  }

  function onDeletion({ actor, call, sentAt = 0 }: Caller, set: string): void {
    const { listedAt, confirmed, deletedAt } = actsOf(actor);
    const { at, listedMs } = confirmed.get(set) ?? { at: -Infinity, listedMs: Infinity };
    const process = processes().find(({ name }) => name === actor);
    const mayBeLate = (process?.stoodStillMs(now() - STANDS_MS) ?? 1) > 0;
    if (sentAt - at > BATCH_MS && !mayBeLate) violated(`${actor} sends ${call} of a zone that it has not confirmed`);
    if (listedAt <= (deletedAt.get(set) ?? -Infinity))
      violated(`${actor} sends ${call} without another list of the zones since its last one`);
    if (listedAt < at && listedMs > FRESH_MS && !suspends)
      violated(`${actor} sends ${call} by a list that was ${listedMs} ms old before`);
    deletedAt.set(set, now());
  }

  return {
    onRequest(caller: Caller, method: string, path: string): void {
      if (!caller.actor.startsWith("reconciler")) return;
      const request = `${method} ${path}`;
      const acts = actsOf(caller.actor);
      if (LIST.test(request) && !/[?&]watch=/.test(path)) acts.listedAt = caller.sentAt ?? now();
      const [, zone] = CONFIRMED.exec(request) ?? [];
      if (zone !== undefined) acts.confirmed.set(zone, { at: now(), listedMs: now() - acts.listedAt });
      const [, set] = DELETED.exec(request) ?? [];
      if (set !== undefined) onDeletion(caller, set);
    },
  };
}
