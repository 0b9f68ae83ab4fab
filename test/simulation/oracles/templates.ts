/** Judges which pods a reconciler deletes by their templates: a pod that is ready goes only if its zone has another one. */
import { dig, isTrue } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";

interface TemplateSafetyOptions {
  readonly zones: readonly string[];
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** How many milliseconds ago what this actor does now may have been decided. */
  readonly decidedMs: (actor: string) => number;
}

/** Calls `violated` with what happened, in words. */
export function createTemplateSafety({ zones, violated, now, decidedMs }: TemplateSafetyOptions) {
  /** The update revisions of the zones, newest last. */
  const revisions = new Map<string, { readonly at: number; readonly revision: unknown }[]>();

  function onSet({ object }: StoreEvent): void {
    const { name } = object.metadata;
    const revision = dig(object, "status", "updateRevision");
    const all = revisions.get(name) ?? [];
    if (all.at(-1)?.revision !== revision) revisions.set(name, [...all, { at: now(), revision }]);
  }

  function onTaken(pod: KubeObject, actor: string): void {
    const all = revisions.get(pod.metadata.labels?.["name"] ?? "") ?? [];
    const from = now() - decidedMs(actor);
    const seen = all.filter((_, i) => (all[i + 1]?.at ?? Infinity) >= from);
    const own = pod.metadata.labels?.["controller-revision-hash"];
    if (seen.length > 0 && seen.every(({ revision }) => revision === own))
      violated(`${actor} deletes ${pod.metadata.name}, which has its zone's template`);
  }

  return {
    onEvent(event: StoreEvent, caller: Caller | undefined): void {
      const { resource, object, previous, type } = event;
      if (object.metadata.namespace !== NAMESPACE) return;
      if (resource === "statefulsets.apps" && zones.includes(object.metadata.name)) onSet(event);
      const begins =
        type === "MODIFIED" && object.metadata.deletionTimestamp && previous?.metadata.deletionTimestamp === undefined;
      if (resource !== "pods" || !begins || !previous || !caller?.actor.startsWith("reconciler")) return;
      if (isTrue(previous, "Ready")) onTaken(previous, caller.actor);
    },
  };
}
