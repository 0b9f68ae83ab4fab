/** Answers in the form that the client asked for. */
import type { Status } from "./api-error.ts";
import { refusal, splitResource } from "./api-error.ts";
import type { Draft, KubeObject } from "./objects.ts";
import type { Answer, Ask } from "./request.ts";
import { tableText } from "./table/table.ts";
import { metadataText, objectText } from "./wire.ts";

export function jsonAnswer(code: number, value: unknown): Answer {
  return { code, body: JSON.stringify(value) };
}

/** An object of the request's own kind. */
export function objectAnswer(ask: Ask, object: KubeObject, code = 200): Answer {
  return { code, body: objectTextIn(ask, object) };
}

export function objectTextIn(ask: Ask, object: KubeObject, withColumns = true): string {
  if (ask.form === "metadata") return metadataText(object);
  if (ask.form === "metadataList")
    throw refusal("NotAcceptable", `you requested PartialObjectMetadataList, but the requested object is not a list (${ask.kind.kind})`);
  if (ask.form === "table") return tableText(ask, [object], { resourceVersion: object.metadata.resourceVersion }, withColumns);
  return objectText(ask.kind, object);
}

/** What dry runs and subresources with kinds of their own answer. */
export function draftAnswer(ask: Ask, draft: Draft, code = 200): Answer {
  if (ask.form !== "metadata") return jsonAnswer(code, draft);
  return jsonAnswer(code, { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: draft.metadata });
}

/** Success without an object. */
export function successAnswer(code: number, details?: Status["details"]): Answer {
  return jsonAnswer(code, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", ...(details ? { details } : { code }) });
}

export function deletedDetails(ask: Ask, object: KubeObject): Record<string, unknown> {
  const { plural, group } = splitResource(ask.resource);
  return { name: object.metadata.name, ...(group && { group }), kind: plural, uid: object.metadata.uid };
}
