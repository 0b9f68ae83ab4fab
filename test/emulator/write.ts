/**
 * create, update, patch and delete.
 *
 * An object passes mutating admission -> defaults -> validation -> validating admission -> store. A change
 * reads the object first. If the object was modified meanwhile, the change is retried, admission included,
 * unless the request names a resourceVersion (GuaranteedUpdate).
 */
import { randomUUID } from "node:crypto";
import { type Answer, objectAnswer, successAnswer } from "./answer.ts";
import {
  alreadyExists,
  badRequest,
  conflict,
  forbidden,
  hasReason,
  invalid,
  notFound,
  statusError,
} from "./api-error.ts";
import { type Draft, type Fields, fieldsOf, type KubeObject, numberOf, timestamp } from "./objects.ts";
import { jsonPatch, mergePatch, strategicPatch } from "./patch.ts";
import { getExisting } from "./read.ts";
import type { Api } from "./api.ts";
import type { ApiRequest } from "./request.ts";
import type { RemoveOptions } from "./lifecycle.ts";
import { validate } from "./validation.ts";
import { conform, decodeDraft, withChange, viewOf } from "./views.ts";

export async function create(api: Api, collection: ApiRequest): Promise<Answer> {
  const { kind, resource, namespace } = collection;
  const given = decodeDraft(collection, collection.body);
  const { generateName } = given.metadata;
  const name = given.metadata.name || (generateName ? `${generateName}${randomUUID().slice(0, 5)}` : "");
  const parent = api.store.get("namespaces", undefined, namespace ?? "");
  if (namespace && !parent) throw notFound("namespaces", namespace);
  if (parent?.metadata.deletionTimestamp)
    throw forbidden(
      resource,
      name,
      `unable to create new content in namespace ${namespace} because it is being terminated`,
    );
  if (kind.subresources.includes("status")) delete given["status"];
  const request = { ...collection, name };
  const systemOwned = {
    name,
    uid: randomUUID(),
    creationTimestamp: timestamp(api.clock.now()),
    ...(kind.generation && { generation: 1 }),
  };
  const complete = (draft: Draft): Draft =>
    conform(kind, { ...draft, metadata: { ...draft.metadata, ...systemOwned } });
  const mutated = await api.admission.mutate(request, { operation: "CREATE", object: complete(given) });
  const object = complete(mutated ?? given);
  validate(kind, object);
  await api.admission.validate(request, { operation: "CREATE", object });
  if (request.dryRun && api.store.get(resource, namespace, name)) throw alreadyExists(resource, name);
  return objectAnswer(request, request.dryRun ? object : api.store.create(resource, object), 201);
}

export async function update(api: Api, request: ApiRequest): Promise<Answer> {
  return change(api, request, () => decodeDraft(request, request.body));
}

const PATCHES: Readonly<Record<string, (target: unknown, patch: unknown) => unknown>> = {
  "application/json-patch+json": jsonPatch,
  "application/merge-patch+json": mergePatch,
  "application/strategic-merge-patch+json": strategicPatch,
};

export async function patch(api: Api, request: ApiRequest): Promise<Answer> {
  const type = request.contentType.split(";")[0] ?? "";
  const apply = PATCHES[type];
  if (!apply || (request.kind.custom && apply === strategicPatch))
    throw statusError("UnsupportedMediaType", `the body of the request was in an unknown format: ${type}`);
  return change(api, request, (view) => decodeDraft(request, apply(view, request.body)));
}

/** The number of attempts in case of conflicts (maxRetryWhenPatchConflicts). */
const MAX_ATTEMPTS = 5;

async function change(api: Api, request: ApiRequest, makeChange: (view: Draft) => Draft): Promise<Answer> {
  const { resource, kind, dryRun } = request;
  const { store, admission } = api;
  for (let attempt = 1; ; attempt++) {
    const current = getExisting(api, request);
    const complete = (draft: Draft): KubeObject =>
      store.update(resource, withChange(request, current, draft), { dryRun: true });
    const desired = makeChange(viewOf(request, current));
    checkUpdatePreconditions(request, desired, current);
    const attributes = { operation: "UPDATE", oldObject: viewOf(request, current) } as const;
    const mutated = await admission.mutate(request, { ...attributes, object: viewOf(request, complete(desired)) });
    const object = complete(mutated ?? desired);
    validate(kind, object, current);
    await admission.validate(request, { ...attributes, object: viewOf(request, object) });
    try {
      const stored = store.update(resource, object, {
        expectedResourceVersion: current.metadata.resourceVersion,
        dryRun,
      });
      return objectAnswer(request, viewOf(request, stored));
    } catch (error) {
      if (!hasReason(error, "Conflict") || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

/** Name and uid are immutable. The resourceVersion is a precondition, and so is the uid of a PUT. */
function checkUpdatePreconditions(
  { resource, name, verb, kind }: ApiRequest,
  { metadata }: Draft,
  current: KubeObject,
): void {
  const { uid, resourceVersion } = current.metadata;
  if (metadata.name && metadata.name !== name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
  if (metadata.uid && metadata.uid !== uid) {
    const message = `Invalid value: ${JSON.stringify(metadata.uid)}: field is immutable`;
    if (verb === "patch") throw invalid(kind, name, [{ reason: "FieldValueInvalid", message, field: "metadata.uid" }]);
    throw conflict(resource, name, `UID in precondition: ${metadata.uid}, UID in object meta: ${uid}`);
  }
  if (metadata.resourceVersion && metadata.resourceVersion !== resourceVersion) throw conflict(resource, name);
}

export function deleteOptions({ preconditions, gracePeriodSeconds, propagationPolicy }: Fields): RemoveOptions {
  return {
    ...fieldsOf(preconditions),
    gracePeriodSeconds: numberOf(gracePeriodSeconds),
    propagationPolicy,
  } as RemoveOptions;
}

export async function remove(api: Api, request: ApiRequest): Promise<Answer> {
  const { store, admission } = api;
  const { resource, namespace, name } = request;
  const body = fieldsOf(request.body);
  const current = getExisting(api, request);
  if (resource === "namespaces" && /^(default|kube-system)$/.test(name))
    throw forbidden(resource, name, "this namespace may not be deleted");
  const attributes = { operation: "DELETE", oldObject: current } as const;
  await admission.mutate(request, attributes);
  await admission.validate(request, attributes);
  const isDryRun = request.dryRun || Array.isArray(body["dryRun"]);
  const last = isDryRun ? current : store.remove(resource, namespace, name, deleteOptions(body));
  const isGone = isDryRun || !store.get(resource, namespace, name);
  // The response carries a pod even if it is removed (ReturnDeletedObject).
  if (!isGone || resource === "pods") return objectAnswer(request, last);
  const { plural, group } = request.kind;
  return successAnswer(200, { details: { name, ...(group && { group }), kind: plural, uid: last.metadata.uid } });
}
