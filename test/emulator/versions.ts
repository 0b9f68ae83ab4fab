/** One stored object seen through another API version: custom resources without conversion, and events of both groups. */
import { isFields } from "./objects.ts";
import type { Draft, Fields, KubeObject } from "./objects.ts";
import { apiVersionOf } from "./registry.ts";
import type { Served } from "./registry.ts";

/** Fields of core/v1 events and their names in events.k8s.io/v1. */
const EVENT_FIELDS: Readonly<Record<string, string>> = {
  involvedObject: "regarding",
  message: "note",
  source: "deprecatedSource",
  firstTimestamp: "deprecatedFirstTimestamp",
  lastTimestamp: "deprecatedLastTimestamp",
  count: "deprecatedCount",
  reportingComponent: "reportingController",
};
const EVENT_FIELDS_BACK = Object.fromEntries(Object.entries(EVENT_FIELDS).map(([core, other]) => [other, core]));

const seen = new WeakMap<KubeObject, KubeObject>();

function rename(object: Fields, names: Readonly<Record<string, string>>): Fields {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [names[key] ?? key, value]));
}

/** The object as the kind's version shows it; the stored object itself where there is no difference. */
export function viewIn(kind: Served, object: KubeObject): KubeObject {
  if (kind.group !== "events.k8s.io") return object;
  const known = seen.get(object);
  if (known) return known;
  const view = { ...rename(object, EVENT_FIELDS), apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: object.metadata };
  seen.set(object, view);
  return view;
}

/** The object as it is stored. */
export function storedForm(kind: Served, object: Draft): Draft {
  if (kind.custom) return { ...object, apiVersion: kind.custom.storedAs };
  if (kind.group !== "events.k8s.io") return object;
  return { ...rename(object, EVENT_FIELDS_BACK), apiVersion: "v1", kind: kind.kind, metadata: object.metadata };
}

/** Nulls mean "not set" to the API's types. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([key, field]) => (field === null ? [] : [[key, withoutNulls(field)]])));
}
