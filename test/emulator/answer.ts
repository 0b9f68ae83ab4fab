/** Answers in the representation that the client requested: the object, its metadata, or a table. */
import type { Draft, Fields } from "./objects.ts";
import { podListAnswer } from "./protobuf/list.ts";
import { apiVersionOf } from "./registry.ts";
import type { ApiRequest } from "./request.ts";
import { columnsOf } from "./table/columns.ts";

export interface Answer {
  readonly code: number;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

const META = "meta.k8s.io/v1";
const texts = new WeakMap<Draft, string>();
const itemTexts = new WeakMap<readonly Draft[], string>();

/**
 * The object's JSON without apiVersion and kind; cached as long as the object lives, so that long lists are
 * fast.
 */
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

/** What `kubectl get` prints. JSON omits functions, so the column definitions come without their `cell`. */
function tableText({ kind, query, now }: ApiRequest, objects: readonly Draft[], metadata: object): string {
  const columnDefinitions = columnsOf(kind);
  const includesObject = query.get("includeObject") === "Object";
  const rows = objects.map((object) => ({
    cells: columnDefinitions.map(({ cell }) => cell(object, now())),
    object: includesObject ? object : metadataOf(object),
  }));
  return JSON.stringify({ kind: "Table", apiVersion: META, metadata, columnDefinitions, rows });
}

export function objectText(request: ApiRequest, object: Draft): string {
  if (request.form === "table")
    return tableText(request, [object], { resourceVersion: object.metadata.resourceVersion });
  return request.form === "metadata" ? JSON.stringify(metadataOf(object)) : fullText(object);
}

function listText(request: ApiRequest, objects: readonly Draft[], metadata: object): string {
  if (request.form === "table") return tableText(request, objects, metadata);
  const list = { kind: `${request.kind.kind}List`, apiVersion: apiVersionOf(request.kind), metadata };
  if (request.form === "metadata")
    return JSON.stringify({
      ...list,
      kind: "PartialObjectMetadataList",
      apiVersion: META,
      items: objects.map(metadataOf),
    });
  // Only items of custom resources carry apiVersion and kind.
  const items = itemTexts.get(objects) ?? objects.map(request.kind.custom ? fullText : bareText).join(",");
  itemTexts.set(objects, items);
  return `${JSON.stringify(list).slice(0, -1)},"items":[${items}]}`;
}

export function listAnswer(request: ApiRequest, objects: readonly Draft[], metadata: Fields): Answer {
  const inProtobuf =
    request.form === "protobuf" && request.resource === "pods" ? podListAnswer(objects, metadata) : undefined;
  return inProtobuf ?? { code: 200, body: listText(request, objects, metadata) };
}

export function jsonAnswer(code: number, value: unknown): Answer {
  return { code, body: JSON.stringify(value) };
}

export function objectAnswer(request: ApiRequest, object: Draft, code = 200): Answer {
  return { code, body: objectText(request, object) };
}

/** Success without an object. */
export function successAnswer(code: number, more: object): Answer {
  return jsonAnswer(code, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", ...more });
}
