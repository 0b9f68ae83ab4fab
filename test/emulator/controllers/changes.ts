/** What a controller does to the cluster in one step, as a value. */
import type { Draft, KubeObject } from "../objects.ts";
import type { Store } from "../store.ts";

export type Change =
  | { readonly verb: "create" | "update"; readonly resource: string; readonly object: Draft }
  /** `atOnce`: without a grace period, as a kubelet does in the end. */
  | { readonly verb: "remove"; readonly resource: string; readonly object: KubeObject; readonly atOnce?: true };

/** What comes of one step of a controller. */
export interface Step {
  readonly changes: readonly Change[];
  /** Milliseconds until the next step is due without another change. */
  readonly nextMs?: number | undefined;
}

/** Writes the changes, in their order; controllers name no version. */
export function apply(store: Store, { changes }: Step): void {
  for (const { verb, resource, object, ...rest } of changes) {
    const { namespace, name = "" } = object.metadata;
    if (verb === "create") store.create(resource, object);
    else if (verb === "update") store.update(resource, object);
    else store.remove(resource, namespace, name, "atOnce" in rest ? { gracePeriodSeconds: 0 } : {});
  }
}
