/** The Kubernetes port of one process on a store: whoever steps the process decides when each call takes effect, if it does. */
import { RolloutError, type ErrorCode } from "../../infra/errors.ts";
import type { Call, Cluster, Patch, Ref } from "../../infra/kubernetes/cluster.ts";
import type { Resource } from "../../infra/kubernetes/resources.ts";
import { ApiError, hasReason } from "../emulator/api-error.ts";
import { dig, put, type Draft, type KubeObject } from "../emulator/objects.ts";
import { jsonPatch, mergePatch } from "../emulator/patch.ts";
import { requestSelector } from "../emulator/selectors.ts";
import type { Store } from "../emulator/store.ts";

/** A call to the API server. */
export interface Deed {
  readonly verb: "list" | "get" | "create" | "replace" | "patch" | "change" | "remove" | "discover";
  readonly plural: string;
  /** "" for a list, and for a question after a kind. */
  readonly name: string;
  readonly body?: unknown;
}

/** Carries a call out, or fails with a RolloutError. */
export type Carry = <T>(deed: Deed, effect: () => T, call?: Call) => Promise<T>;

export interface PortOptions {
  /** False for an API server that ignores versions, which proves that plays find the violations. */
  readonly checksVersions?: boolean;
  /** Whether the definitions of custom resources have a status. */
  readonly keepsStatus?: boolean;
  /** What serves any kind that is asked for. */
  readonly discovered?: readonly Resource[];
}

export const keyOf = ({ group, plural }: Pick<Resource, "group" | "plural">): string =>
  group === "" ? plural : `${plural}.${group}`;

export function portOf(store: Store, carry: Carry, options: PortOptions = {}): Cluster {
  const { checksVersions = true, keepsStatus = true, discovered = [] } = options;

  function found(resource: Resource, { namespace, name }: Ref): KubeObject {
    const object = store.get(keyOf(resource), namespace, name);
    if (!object) throw new RolloutError("NotFound", `${resource.plural} ${name}`);
    return object;
  }

  /** Stores what was made of an object, if it is still the one of that version. */
  function write(resource: Resource, ref: Ref, next: Draft): KubeObject {
    const current = found(resource, ref);
    const { resourceVersion } = next.metadata;
    const isStatus = ref.subresource === "status";
    if (isStatus && !keepsStatus && resource.group.includes(".")) return current;
    const { status, ...rest } = isStatus ? current : next;
    const kept = isStatus ? next["status"] : (dig(current, "status") ?? status);
    const object = put({ ...rest, kind: current.kind, apiVersion: current.apiVersion }, ["status"], kept);
    return store.update(
      keyOf(resource),
      object,
      checksVersions && resourceVersion ? { expectedResourceVersion: resourceVersion } : {},
    );
  }

  const merge = (resource: Resource, patch: Patch): KubeObject => {
    const current = found(resource, patch);
    if (patch.type === "json") return write(resource, patch, jsonPatch(current, patch.body) as Draft);
    const { resourceVersion = current.metadata.resourceVersion } = (patch.body as Partial<KubeObject>).metadata ?? {};
    const next = mergePatch(current, patch.body) as Draft;
    return write(resource, patch, put(next, ["metadata", "resourceVersion"], resourceVersion));
  };

  return {
    async *list(resource, { namespace, labelSelector = "", fieldSelector = "" }, call) {
      const key = keyOf(resource);
      const selects = requestSelector(key, new URLSearchParams({ labelSelector, fieldSelector })) ?? (() => true);
      const items = await carry(
        { verb: "list", plural: resource.plural, name: "" },
        effect(() => store.list(key, namespace).filter(selects)),
        call,
      );
      yield { items: items as never[], resourceVersion: String(store.version()) };
    },
    get: async (resource, ref, call) =>
      (await carry(
        { ...of("get", resource, ref) },
        effect(() => found(resource, ref)),
        call,
      )) as never,
    create: async (resource, { namespace, body }, call) => {
      const draft = { apiVersion: "v1", kind: resource.plural, ...(body as object) } as unknown as Draft;
      const object = put(draft, ["metadata", "namespace"], namespace);
      const deed = { ...of("create", resource, { name: object.metadata.name ?? "" }), body };
      return (await carry(
        deed,
        effect(() => store.create(keyOf(resource), object)),
        call,
      )) as never;
    },
    replace: async (resource, { body, ...ref }, call) => {
      const next = body as unknown as Draft;
      const deed = { ...of("replace", resource, ref), body };
      const act = (): KubeObject => {
        if (checksVersions && !next.metadata.resourceVersion)
          throw new RolloutError("Invalid", "metadata.resourceVersion: must be specified for an update");
        return write(resource, ref, next);
      };
      return (await carry(deed, effect(act), call)) as never;
    },
    patch: async (resource, patch, call) => {
      const deed = { ...of("patch", resource, patch), body: patch.body };
      return (
        await carry(
          deed,
          effect(() => merge(resource, patch)),
          call,
        )
      ).metadata.resourceVersion;
    },
    change: async (resource, patch, call) => {
      // Takes no step: it stores nothing, and the write that follows is checked again.
      if (patch.dryRun) return mergePatch(found(resource, patch), patch.body) as never;
      const deed = { ...of("change", resource, patch), body: patch.body };
      return (await carry(
        deed,
        effect(() => merge(resource, patch)),
        call,
      )) as never;
    },
    remove: async (resource, { preconditions, ...ref }, call) => {
      const { uid, resourceVersion } = preconditions;
      const options = { uid, ...(resourceVersion !== undefined && { resourceVersion }) };
      await carry(
        of("remove", resource, ref),
        effect(() => store.remove(keyOf(resource), ref.namespace, ref.name, options)),
        call,
      );
    },
    discover: (_group, kind, call) => carry({ verb: "discover", plural: kind, name: "" }, () => discovered, call),
    watch: () => Promise.reject(new RolloutError("Expired", "no watches here")),
  };
}

const of = <V extends Deed["verb"]>(verb: V, { plural }: Resource, { name }: Pick<Ref, "name">) => ({
  verb,
  plural,
  name,
});

const CODES = ["NotFound", "Conflict", "AlreadyExists", "Expired", "Invalid"] as const satisfies ErrorCode[];

/** The store's errors as those of the port. */
const effect =
  <T>(act: () => T) =>
  (): T => {
    try {
      return act();
    } catch (error) {
      const code = CODES.find((one) => hasReason(error, one));
      throw code && error instanceof ApiError ? new RolloutError(code, error.message) : error;
    }
  };
