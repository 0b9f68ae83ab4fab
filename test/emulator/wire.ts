/** Objects as text on the wire. The text of an object is made once and kept as long as the object. */
import type { KubeObject, Metadata } from "./objects.ts";
import { apiVersionOf } from "./registry.ts";
import type { Served } from "./registry.ts";

const bodies = new WeakMap<KubeObject, string>();
const metadatas = new WeakMap<Metadata, string>();

/** `{...}` without apiVersion and kind. */
function bodyOf(object: KubeObject): string {
  const known = bodies.get(object);
  if (known !== undefined) return known;
  const { apiVersion: _, kind: __, ...rest } = object;
  const text = JSON.stringify(rest);
  bodies.set(object, text);
  return text;
}

export function objectText(kind: Served, object: KubeObject): string {
  return `{"kind":"${kind.kind}","apiVersion":"${apiVersionOf(kind)}",${bodyOf(object).slice(1)}`;
}

/** Items of lists carry apiVersion and kind for custom resources only. */
export function itemText(kind: Served, object: KubeObject): string {
  return kind.custom ? objectText(kind, object) : bodyOf(object);
}

export function metadataText(object: KubeObject): string {
  const text = metadatas.get(object.metadata) ?? JSON.stringify(object.metadata);
  metadatas.set(object.metadata, text);
  return `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":${text}}`;
}

/** What the client wants back, by its Accept header. */
export type Form = "object" | "metadata" | "metadataList" | "table";

const FORMS: Readonly<Record<string, Form>> = {
  Table: "table",
  PartialObjectMetadata: "metadata",
  PartialObjectMetadataList: "metadataList",
};

/** The first acceptable form; undefined when none is. */
export function formOf(accept: string | undefined): Form | undefined {
  if (!accept) return "object";
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
    if (!["application/json", "application/*", "*/*"].includes(type)) continue;
    const as = parameters.find((parameter) => parameter.startsWith("as="))?.slice(3);
    const form = as === undefined ? "object" : FORMS[as];
    if (form) return form;
  }
  return undefined;
}
