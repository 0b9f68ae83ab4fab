/** Answers in the form that the client asked for. */
import type { Draft } from "./objects.ts";
import { apiVersionOf } from "./registry.ts";
import type { Ask } from "./request.ts";
import { columnsOf } from "./table/columns.ts";

export interface Answer {
  readonly code: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const META = "meta.k8s.io/v1";
const texts = new WeakMap<Draft, string>();

/** `{...}` without apiVersion and kind; made once and kept as long as the object, so that long lists are quick. */
function bareText(object: Draft): string {
  const text = texts.get(object) ?? JSON.stringify({ ...object, apiVersion: undefined, kind: undefined });
  texts.set(object, text);
  return text;
}

function fullText(object: Draft): string {
  return `{"kind":"${object.kind}","apiVersion":"${object.apiVersion}",${bareText(object).slice(1)}`;
}

function metadataOf({ metadata }: Draft): object {
  return { kind: "PartialObjectMetadata", apiVersion: META, metadata };
}

/** What `kubectl get` prints. Functions are left out of JSON: the columns come without their cells. */
function tableText({ kind, query, now }: Ask, objects: readonly Draft[], metadata: object): string {
  const columnDefinitions = columnsOf(kind);
  const isWhole = query.get("includeObject") === "Object";
  const rows = objects.map((object) => ({
    cells: columnDefinitions.map(({ cell }) => cell(object, now())),
    object: isWhole ? object : metadataOf(object),
  }));
  return JSON.stringify({ kind: "Table", apiVersion: META, metadata, columnDefinitions, rows });
}

export function objectText(ask: Ask, object: Draft): string {
  if (ask.form === "table") return tableText(ask, [object], { resourceVersion: object.metadata.resourceVersion });
  return ask.form === "metadata" ? JSON.stringify(metadataOf(object)) : fullText(object);
}

export function listText(ask: Ask, objects: readonly Draft[], metadata: object): string {
  if (ask.form === "table") return tableText(ask, objects, metadata);
  const list = { kind: `${ask.kind.kind}List`, apiVersion: apiVersionOf(ask.kind), metadata };
  if (ask.form === "metadata")
    return JSON.stringify({ ...list, kind: "PartialObjectMetadataList", apiVersion: META, items: objects.map(metadataOf) });
  // Items carry apiVersion and kind for custom resources only.
  const items = objects.map(ask.kind.custom ? fullText : bareText);
  return `${JSON.stringify(list).slice(0, -1)},"items":[${items.join(",")}]}`;
}

export function jsonAnswer(code: number, value: unknown): Answer {
  return { code, body: JSON.stringify(value) };
}

export function objectAnswer(ask: Ask, object: Draft, code = 200): Answer {
  return { code, body: objectText(ask, object) };
}

/** Success without an object. */
export function successAnswer(code: number, more: object): Answer {
  return jsonAnswer(code, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", ...more });
}
