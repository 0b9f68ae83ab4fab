/**
 * create, update, patch and delete.
 *
 * An object goes through mutate -> defaults -> validate -> check -> store. A change reads the object first; when it changed meanwhile,
 * the change goes round again, admission included, unless the request names the resourceVersion that it means (GuaranteedUpdate).
 */
import { randomUUID } from "node:crypto";
import { type Answer, objectAnswer, successAnswer } from "./answer.ts";
import { alreadyExists, badRequest, conflict, forbidden, hasReason, invalid, notFound, refusal } from "./api-error.ts";
import { type Draft, type Fields, fieldsOf, type KubeObject, numberOf, timestamp } from "./objects.ts";
import { jsonPatch, mergePatch, strategicPatch } from "./patch.ts";
import { existing } from "./read.ts";
import type { Api, Ask } from "./request.ts";
import type { RemoveOptions } from "./store.ts";
import { validate } from "./validation.ts";
import { conform, draftOf, merged, shown } from "./views.ts";

export async function create(api: Api, collection: Ask): Promise<Answer> {
  const { kind, resource, namespace } = collection;
  const given = draftOf(collection, collection.body);
  const { generateName } = given.metadata;
  const name = given.metadata.name || (generateName ? `${generateName}${randomUUID().slice(0, 5)}` : "");
  const home = api.store.get("namespaces", undefined, namespace ?? "");
  if (namespace && !home) throw notFound("namespaces", namespace);
  if (home?.metadata.deletionTimestamp)
    throw forbidden(resource, name, `unable to create new content in namespace ${namespace} because it is being terminated`);
  if (kind.subresources.includes("status")) delete given["status"];
  const ask = { ...collection, name };
  const owned = { name, uid: randomUUID(), creationTimestamp: timestamp(api.clock.now()), ...(kind.generation && { generation: 1 }) };
  const complete = (draft: Draft): Draft => conform(kind, { ...draft, metadata: { ...draft.metadata, ...owned } });
  const mutated = await api.admission.mutate(ask, { operation: "CREATE", object: complete(given) });
  const object = complete(mutated ?? given);
  validate(kind, object);
  await api.admission.check(ask, { operation: "CREATE", object });
  if (ask.dryRun && api.store.get(resource, namespace, name)) throw alreadyExists(resource, name);
  return objectAnswer(ask, ask.dryRun ? object : api.store.create(resource, object), 201);
}

export async function update(api: Api, ask: Ask): Promise<Answer> {
  return change(api, ask, () => draftOf(ask, ask.body));
}

const PATCHES: Readonly<Record<string, (target: unknown, patch: unknown) => unknown>> = {
  "application/json-patch+json": jsonPatch,
  "application/merge-patch+json": mergePatch,
  "application/strategic-merge-patch+json": strategicPatch,
};

export async function patch(api: Api, ask: Ask): Promise<Answer> {
  const type = ask.contentType.split(";")[0] ?? "";
  const apply = PATCHES[type];
  if (!apply || (ask.kind.custom && apply === strategicPatch))
    throw refusal("UnsupportedMediaType", `the body of the request was in an unknown format: ${type}`);
  return change(api, ask, (seen) => draftOf(ask, apply(seen, ask.body)));
}

/** Patches give up after so many conflicts (maxRetryWhenPatchConflicts). */
const MAX_ROUNDS = 5;

async function change(api: Api, ask: Ask, makeChange: (seen: Draft) => Draft): Promise<Answer> {
  const { resource, kind, dryRun } = ask;
  const { store, admission } = api;
  for (let round = 1; ; round++) {
    const current = existing(api, ask);
    const complete = (draft: Draft): KubeObject => store.update(resource, merged(ask, current, draft), { dryRun: true });
    const wanted = makeChange(shown(ask, current));
    checkPreconditions(ask, wanted, current);
    const review = { operation: "UPDATE", oldObject: shown(ask, current) } as const;
    const mutated = await admission.mutate(ask, { ...review, object: shown(ask, complete(wanted)) });
    const object = complete(mutated ?? wanted);
    validate(kind, object, current);
    await admission.check(ask, { ...review, object: shown(ask, object) });
    try {
      const stored = store.update(resource, object, { expectedResourceVersion: current.metadata.resourceVersion, dryRun });
      return objectAnswer(ask, shown(ask, stored));
    } catch (error) {
      if (!hasReason(error, "Conflict") || round === MAX_ROUNDS) throw error;
    }
  }
}

/** An object's name and uid cannot change; its resourceVersion is a precondition, and so is the uid of a replacement. */
function checkPreconditions({ resource, name, verb, kind }: Ask, { metadata }: Draft, current: KubeObject): void {
  const { uid, resourceVersion } = current.metadata;
  if (metadata.name && metadata.name !== name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
  if (metadata.uid && metadata.uid !== uid) {
    const message = `Invalid value: ${JSON.stringify(metadata.uid)}: field is immutable`;
    if (verb === "patch") throw invalid(kind.kind, kind.group, name, [{ reason: "FieldValueInvalid", message, field: "metadata.uid" }]);
    throw conflict(resource, name, `UID in precondition: ${metadata.uid}, UID in object meta: ${uid}`);
  }
  if (metadata.resourceVersion && metadata.resourceVersion !== resourceVersion) throw conflict(resource, name);
}

export function deleteOptions({ preconditions, gracePeriodSeconds, propagationPolicy }: Fields): RemoveOptions {
  return { ...fieldsOf(preconditions), gracePeriodSeconds: numberOf(gracePeriodSeconds), propagationPolicy } as RemoveOptions;
}

export async function remove(api: Api, ask: Ask): Promise<Answer> {
  const { store, admission } = api;
  const { resource, namespace, name } = ask;
  const body = fieldsOf(ask.body);
  const current = existing(api, ask);
  if (resource === "namespaces" && /^(default|kube-system)$/.test(name))
    throw forbidden(resource, name, "this namespace may not be deleted");
  const review = { operation: "DELETE", oldObject: current } as const;
  await admission.mutate(ask, review);
  await admission.check(ask, review);
  const isDryRun = ask.dryRun || Array.isArray(body["dryRun"]);
  const left = isDryRun ? current : store.remove(resource, namespace, name, deleteOptions(body));
  const isGone = isDryRun || !store.get(resource, namespace, name);
  // Pods answer themselves even when they are gone (ReturnDeletedObject).
  if (!isGone || resource === "pods") return objectAnswer(ask, left);
  const { plural, group } = ask.kind;
  return successAnswer(200, { details: { name, ...(group && { group }), kind: plural, uid: left.metadata.uid } });
}
