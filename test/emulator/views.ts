/** What a request sees of a stored object, and what it may change: the object itself, its status, or its scale. */
import { badRequest, invalid } from "./api-error.ts";
import { dig, fieldsOf, isFields, numberOf, plainText, put } from "./objects.ts";
import type { Draft, KubeObject, Metadata } from "./objects.ts";
import type { Served } from "./registry.ts";
import { withDefaults } from "./defaults.ts";

/** The metadata that no client can change. */
function systemOwned(current: Metadata): Metadata {
  const { labels: _, annotations: __, ownerReferences: ___, finalizers: ____, ...owned } = current;
  return owned;
}

export interface View {
  /** How admission and the client see it. */
  read(current: KubeObject): Draft;
  /** The object to store when the client wants `changed`. */
  write(current: KubeObject, changed: Draft): Draft;
}

/** In the form that is stored: pruned and defaulted. */
export function conform(kind: Served, object: Draft): Draft {
  return kind.custom ? kind.custom.schema.conform(object) : withDefaults(kind.resource, object);
}

export function hasStatus(kind: Served): boolean {
  return kind.subresources.includes("status");
}

function withStatusOf(current: KubeObject, object: Draft): Draft {
  return put(object, ["status"], current["status"]);
}

const whole = (kind: Served): View => ({
  read: (current) => current,
  write: (current, changed) => {
    const metadata = { ...changed.metadata, ...systemOwned(current.metadata) };
    const object = { ...changed, metadata };
    return conform(kind, hasStatus(kind) ? withStatusOf(current, object) : object);
  },
});

const status = (kind: Served): View => ({
  read: (current) => current,
  write: (current, changed) => {
    // Built-in kinds let a status write change labels and annotations; custom resources do not.
    const metadata = kind.custom ? current.metadata : { ...changed.metadata, ...systemOwned(current.metadata) };
    const object: Draft = { ...put(current, ["status"], changed["status"]), metadata };
    return kind.custom ? kind.custom.schema.conform(object) : object;
  },
});

const scale = (kind: Served): View => {
  const paths = kind.custom?.scale ?? { spec: ["spec", "replicas"], status: ["status", "replicas"] };
  return {
    read: (current) => {
      const { name, namespace, uid, resourceVersion, creationTimestamp } = current.metadata;
      const replicas = numberOf(dig(current, ...paths.spec)) ?? 0;
      const selector = selectorText(kind, current);
      return {
        kind: "Scale",
        apiVersion: "autoscaling/v1",
        metadata: { name, ...(namespace && { namespace }), uid, resourceVersion, creationTimestamp },
        spec: replicas === 0 ? {} : { replicas },
        status: { replicas: numberOf(dig(current, ...paths.status)) ?? 0, ...(selector && { selector }) },
      };
    },
    write: (current, changed) => {
      const replicas = dig(changed, "spec", "replicas") ?? 0;
      if (typeof replicas !== "number") throw badRequest('Scale in version "v1" cannot be handled as a Scale: spec.replicas is no number');
      if (replicas < 0)
        throw invalid("Scale", "autoscaling", current.metadata.name, [
          {
            reason: "FieldValueInvalid",
            message: `Invalid value: ${replicas}: must be greater than or equal to 0`,
            field: "spec.replicas",
          },
        ]);
      return put(current, paths.spec, replicas);
    },
  };
};

function selectorText(kind: Served, object: KubeObject): string {
  const custom = kind.custom?.scale?.selector;
  if (custom) return plainText(dig(object, ...custom));
  const selector = dig(object, "spec", "selector");
  if (!isFields(selector)) return "";
  return Object.entries(fieldsOf(selector["matchLabels"]))
    .map(([key, value]) => `${key}=${String(value)}`)
    .toSorted()
    .join(",");
}

const VIEWS: Readonly<Record<string, (kind: Served) => View>> = { "": whole, status, scale };

/** Undefined for subresources that are no view of the object. */
export function viewOf(kind: Served, subresource: string): View | undefined {
  return VIEWS[subresource]?.(kind);
}
