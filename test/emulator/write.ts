/**
 * create, update, patch and delete.
 *
 * An object passes mutating admission -> defaults -> validation -> validating admission -> store. A change
 * reads the object first. If the object was modified meanwhile, the change is retried, admission included,
 * unless the request names a resourceVersion (GuaranteedUpdate).
 */
import { randomUUID } from "node:crypto";
import { type Answer, listAnswer, objectAnswer, successAnswer } from "./answer.ts";
import {
  alreadyExists,
  badRequest,
  conflict,
  errorWithoutReason,
  forbidden,
  hasReason,
  invalid,
  noSuchResource,
  notFound,
  type StatusCause,
  statusError,
} from "./api-error.ts";
import { dig, type Draft, type Fields, fieldsOf, type KubeObject, numberOf, plainText, timestamp } from "./objects.ts";
import { jsonPatch, mergePatch, strategicPatch } from "./patch.ts";
import { getExisting } from "./read.ts";
import type { Api } from "./api.ts";
import { invalidValue } from "./built-in-rules.ts";
import type { ApiRequest } from "./request.ts";
import { checkDeletePreconditions, isRemovable, markDeleted, type RemoveOptions } from "./lifecycle.ts";
import { CRDS } from "./registry.ts";
import { requestSelector } from "./selectors.ts";
import { validate } from "./validation.ts";
import { conform, decodeDraft, withChange, viewOf } from "./views.ts";

export async function create(api: Api, collection: ApiRequest): Promise<Answer> {
  return createFrom(api, collection, decodeDraft(collection, collection.body));
}

async function createFrom(api: Api, collection: ApiRequest, given: Draft): Promise<Answer> {
  const { kind, resource, namespace } = collection;
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
  if (given.metadata.resourceVersion && !request.dryRun)
    throw errorWithoutReason("resourceVersion should not be set on objects to be created");
  const taken = api.store.get(resource, namespace, name);
  if (taken) throw alreadyExists(resource, name, taken.metadata.deletionTimestamp !== undefined);
  // Whoever deletes a definition deletes also what was under admission meanwhile.
  if (kind.custom && !api.store.get(CRDS, undefined, resource)) throw noSuchResource();
  return objectAnswer(request, request.dryRun ? object : api.store.create(resource, object), 201);
}

/** Kinds of which an update creates what is not there (AllowCreateOnUpdate); its resourceVersion is not looked at. */
const CREATED_BY_UPDATE: ReadonlySet<string> = new Set(["leases.coordination.k8s.io", "events"]);

export async function update(api: Api, request: ApiRequest): Promise<Answer> {
  const { resource, namespace, name, subresource } = request;
  const draft = decodeDraft(request, request.body);
  checkName(draft, name);
  if (!subresource && CREATED_BY_UPDATE.has(resource) && !api.store.get(resource, namespace, name)) {
    const { resourceVersion: _, uid, ...metadata } = draft.metadata;
    if (uid) throw conflict(resource, name, `UID in precondition: ${uid}, UID in object meta: `);
    return createFrom(api, request, { ...draft, metadata });
  }
  return change(api, request, () => draft);
}

/** Throws BadRequest unless the object names what the URL names. */
function checkName({ metadata }: Draft, name: string): void {
  if (!metadata.name)
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  if (metadata.name !== name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
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
    const complete = ({ metadata, ...draft }: Draft): KubeObject => {
      const { deletionTimestamp: _, deletionGracePeriodSeconds: __, generation: ___, ...given } = metadata;
      return store.update(resource, withChange(request, current, { ...draft, metadata: given }), { dryRun: true });
    };
    const desired = makeChange(viewOf(request, current));
    checkUpdatePreconditions(request, desired, current);
    const changed = changedBySystemAlone(request, desired, current);
    const attributes = { operation: "UPDATE", oldObject: viewOf(request, current) } as const;
    const mutated = await admission.mutate(request, { ...attributes, object: viewOf(request, complete(desired)) });
    const object = complete(mutated ?? desired);
    validate(kind, object, current, changed);
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

/** Kinds of which an update must name the resourceVersion. */
const CONDITIONAL: ReadonlySet<string> = new Set(["leases.coordination.k8s.io", "poddisruptionbudgets.policy"]);

/** The name is immutable. The resourceVersion is a precondition, and so is the uid, but of a patch. */
function checkUpdatePreconditions(
  { resource, name, verb, kind, subresource }: ApiRequest,
  { metadata, spec }: Draft,
  current: KubeObject,
): void {
  const { uid, resourceVersion } = current.metadata;
  checkName({ metadata } as Draft, name);
  const replicas = numberOf(dig(spec, "replicas")) ?? 0;
  if (subresource === "scale" && !kind.custom && replicas < 0)
    throw invalid({ kind: "Scale", group: "autoscaling" }, name, [
      invalidValue("spec.replicas", replicas, "must be greater than or equal to 0"),
    ]);
  const isScale = subresource === "scale" && !kind.custom && verb === "patch";
  const isConditional = subresource !== "scale" && (kind.custom || CONDITIONAL.has(resource));
  if (metadata.uid && metadata.uid !== uid && (verb === "update" || isScale)) {
    const [plural, ...group] = resource.split(".");
    const named = isScale ? [`${plural}/scale`, ...group].join(".") : resource;
    throw conflict(
      named,
      name,
      `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${uid}`,
    );
  }
  if (metadata.resourceVersion && metadata.resourceVersion !== resourceVersion) throw conflict(resource, name);
  // AllowUnconditionalUpdate of the kind's strategy; the error names the resource in place of the kind.
  if (!metadata.resourceVersion && verb === "update" && isConditional)
    throw invalid({ kind: kind.plural, group: kind.group }, name, [
      invalidValue("metadata.resourceVersion", 0, "must be specified for an update"),
    ]);
}

/** What is wrong with fields that only the server sets: they may be absent, or as they are. */
function changedBySystemAlone(
  { kind, subresource }: ApiRequest,
  { metadata }: Draft,
  { metadata: stored }: KubeObject,
): StatusCause[] {
  // Metadata beside the status of a custom resource is not looked at.
  if (subresource === "scale" || (kind.custom && subresource === "status")) return [];
  const { deletionTimestamp } = stored;
  return (
    (["uid", "deletionTimestamp"] as const)
      .filter((field) => metadata[field] && metadata[field] !== stored[field])
      // A deletion that has begun stays as it is.
      .filter((field) => field !== "deletionTimestamp" || deletionTimestamp === undefined)
      .map((field) => invalidValue(`metadata.${field}`, metadata[field], "field is immutable"))
  );
}

const POLICIES: ReadonlySet<string> = new Set(["Foreground", "Background", "Orphan"]);

/** Throws Invalid for a propagation policy that there is none of. */
export function deleteOptions({ preconditions, gracePeriodSeconds, propagationPolicy }: Fields): RemoveOptions {
  if (propagationPolicy !== undefined && !POLICIES.has(plainText(propagationPolicy)))
    throw invalid({ kind: "DeleteOptions", group: "meta.k8s.io" }, "", [
      {
        reason: "FieldValueNotSupported",
        message: `Unsupported value: ${JSON.stringify(propagationPolicy)}: supported values: "Foreground", "Background", "Orphan", "nil"`,
        field: "propagationPolicy",
      },
    ]);
  return {
    ...fieldsOf(preconditions),
    gracePeriodSeconds: numberOf(gracePeriodSeconds),
    propagationPolicy,
  } as RemoveOptions;
}

/** Deletes what the selectors of the query match; answers with a list of it, as it was. */
export async function removeCollection(api: Api, request: ApiRequest): Promise<Answer> {
  const { resource, namespace, query } = request;
  const selects = requestSelector(resource, query) ?? (() => true);
  const objects = api.store.list(resource, namespace).filter(selects);
  const resourceVersion = String(api.store.version());
  for (const { metadata } of objects)
    await remove(api, { ...request, name: metadata.name, namespace: metadata.namespace });
  return listAnswer(request, objects, { resourceVersion, ...(request.kind.custom && { continue: "" }) });
}

/**
 * The validation of a deletion belongs to its write: the object that admission was asked about is the one that goes, and
 * admission is asked again if it has changed meanwhile (registry/rest.AdmissionToValidateObjectDeleteFunc).
 */
export async function remove(api: Api, given: ApiRequest): Promise<Answer> {
  const { store, clock } = api;
  const { resource, namespace, name } = given;
  const body = fieldsOf(given.body);
  const options = deleteOptions(body);
  const request = { ...given, dryRun: given.dryRun || Array.isArray(body["dryRun"]) };
  const current = await admitRemoval(api, request);
  if (request.dryRun) checkDeletePreconditions(current, options);
  const last = request.dryRun
    ? markDeleted(current, options, clock.now())
    : store.remove(resource, namespace, name, options);
  const isGone = request.dryRun ? isRemovable(last) : !store.get(resource, namespace, name);
  // The response carries a pod even if it is removed (ReturnDeletedObject).
  if (!isGone || resource === "pods") return objectAnswer(request, last);
  const { plural, group } = request.kind;
  return successAnswer(200, { details: { name, ...(group && { group }), kind: plural, uid: last.metadata.uid } });
}

/** Returns the object as admission has let it go; throws a denial. */
async function admitRemoval(api: Api, request: ApiRequest): Promise<KubeObject> {
  const { store, admission } = api;
  const { resource, namespace, name } = request;
  for (;;) {
    const current = getExisting(api, request);
    if (resource === "namespaces" && /^(default|kube-system)$/.test(name))
      throw forbidden(resource, name, "this namespace may not be deleted");
    const attributes = { operation: "DELETE", oldObject: current } as const;
    await admission.mutate(request, attributes);
    await admission.validate(request, attributes);
    const { metadata } = store.get(resource, namespace, name) ?? {};
    if (metadata?.resourceVersion === current.metadata.resourceVersion) return current;
  }
}
