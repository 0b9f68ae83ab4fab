/**
 * update and patch.
 *
 * A change goes round: read -> change -> mutate -> check -> store. When the object changed meanwhile it goes round again, admission
 * included, unless the request names the resourceVersion that it means (GuaranteedUpdate of the real server).
 */
import { draftAnswer, objectAnswer } from "./answer.ts";
import type { Api } from "./api.ts";
import { badRequest, conflict, hasReason, invalid, notAllowed, notFound, refusal, unfit } from "./api-error.ts";
import { bodyOf, draftOf, optionsOf, parseBody } from "./body.ts";
import { create } from "./create.ts";
import { dig, isFields, listOf, put } from "./objects.ts";
import type { Draft, Fields, KubeObject } from "./objects.ts";
import { jsonPatch, mergePatch, strategicPatch } from "./patch.ts";
import { apiVersionOf } from "./registry.ts";
import type { Answer, Ask } from "./request.ts";
import { validate } from "./validation.ts";
import { viewOf } from "./views.ts";
import type { View } from "./views.ts";

type Change = (seen: Draft) => Draft;

const SCALE = { apiVersion: "autoscaling/v1", kind: "Scale" };

function expectedOf(ask: Ask): { apiVersion: string; kind: string } {
  return ask.subresource === "scale" ? SCALE : { apiVersion: apiVersionOf(ask.kind), kind: ask.kind.kind };
}

/** Resources that a PUT creates where they are missing (AllowCreateOnUpdate). */
const CREATED_BY_PUT = new Set(["leases.coordination.k8s.io"]);

export async function update(api: Api, ask: Ask): Promise<Answer> {
  const draft = draftOf(ask, bodyOf(ask), expectedOf(ask));
  const isMissing = !api.store.get(ask.resource, ask.namespace, ask.name);
  if (isMissing && CREATED_BY_PUT.has(ask.resource)) {
    checkName(ask, draft);
    return create(api, ask, put(draft, ["metadata", "resourceVersion"], undefined));
  }
  return change(api, ask, () => draft);
}

const PATCHES: Readonly<Record<string, (target: unknown, patch: unknown) => unknown>> = {
  "application/json-patch+json": jsonPatch,
  "application/merge-patch+json": mergePatch,
  "application/strategic-merge-patch+json": strategicPatch,
};

export async function patch(api: Api, ask: Ask): Promise<Answer> {
  const type = ask.contentType.split(";")[0]?.trim() ?? "";
  const accepted = Object.keys(PATCHES).filter((one) => !(ask.kind.custom && one.includes("strategic")));
  const apply = accepted.includes(type) ? PATCHES[type] : undefined;
  if (!apply) throw refusal("UnsupportedMediaType", `accepted media types include: ${accepted.join(", ")}`);
  const wanted = parseBody(ask);
  return change(api, ask, (seen) => {
    const changed = apply(seen, wanted);
    if (!isFields(changed)) throw unfit();
    return draftOf(ask, changed, expectedOf(ask));
  });
}

/** Patches give up after so many conflicts (maxRetryWhenPatchConflicts). */
const MAX_ROUNDS = 5;

async function change(api: Api, ask: Ask, makeChange: Change): Promise<Answer> {
  const { kind, resource, namespace, name } = ask;
  const view = viewOf(kind, ask.subresource);
  if (!view) throw notAllowed();
  // Admission is told UpdateOptions of patches too.
  const options = optionsOf(ask, "UpdateOptions");
  for (let round = 1; ; round++) {
    const current = api.store.get(resource, namespace, name);
    if (!current) throw notFound(resource, name);
    const seen = view.read(current);
    const wanted = makeChange(seen);
    checkIdentity(ask, wanted, current);
    const object = await admit(api, ask, view, current, wanted, options);
    try {
      const stored = api.store.update(resource, object, { expectedResourceVersion: current.metadata.resourceVersion, dryRun: ask.dryRun });
      return ask.subresource === "scale" ? draftAnswer(ask, view.read(stored)) : objectAnswer(ask, stored);
    } catch (error) {
      if (!hasReason(error, "Conflict") || round === MAX_ROUNDS) throw error;
    }
  }
}

function checkName(ask: Ask, { metadata }: Draft): void {
  if (metadata.name && metadata.name !== ask.name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${ask.name})`);
}

/** A PUT's uid is a precondition, a patch's an attempt to change it. */
function checkIdentity(ask: Ask, draft: Draft, current: KubeObject): void {
  checkName(ask, draft);
  const { metadata } = draft;
  if (ask.verb === "patch" && metadata.uid && metadata.uid !== current.metadata.uid) {
    const message = `Invalid value: ${JSON.stringify(metadata.uid)}: field is immutable`;
    throw invalid(ask.kind.kind, ask.kind.group, ask.name, [{ reason: "FieldValueInvalid", message, field: "metadata.uid" }]);
  }
  if (metadata.uid && metadata.uid !== current.metadata.uid)
    throw conflict(ask.resource, ask.name, `UID in precondition: ${metadata.uid}, UID in object meta: ${current.metadata.uid}`);
  const needsVersion = ask.kind.custom !== undefined || CREATED_BY_PUT.has(ask.resource);
  if (!metadata.resourceVersion && needsVersion && ask.subresource !== "scale") {
    const message = "Invalid value: 0: must be specified for an update";
    throw invalid(ask.kind.plural, ask.kind.group, ask.name, [{ reason: "FieldValueInvalid", message, field: "metadata.resourceVersion" }]);
  }
  if (metadata.resourceVersion && metadata.resourceVersion !== current.metadata.resourceVersion) throw conflict(ask.resource, ask.name);
}

async function admit(api: Api, ask: Ask, view: View, current: KubeObject, wanted: Draft, options: Fields): Promise<Draft> {
  const seen = (draft: Draft): Draft => view.read(asSeen(draft, current));
  const oldObject = view.read(current);
  const draft = view.write(current, wanted);
  const mutated = await api.admission.mutate(ask, { operation: "UPDATE", object: seen(draft), oldObject, options });
  const object = mutated ? view.write(current, mutated) : draft;
  checkDeleting(ask, object, current);
  validate(ask.kind, object, current);
  const prepared = api.store.update(ask.resource, object, { dryRun: true });
  await api.admission.check(ask, { operation: "UPDATE", object: view.read(prepared), oldObject, options });
  return object;
}

function asSeen(draft: Draft, current: KubeObject): KubeObject {
  const { uid, resourceVersion, creationTimestamp, name } = current.metadata;
  return { ...draft, metadata: { ...draft.metadata, uid, resourceVersion, creationTimestamp, name } };
}

/** Finalizers cannot be added once a deletion has begun. */
function checkDeleting(ask: Ask, object: Draft, current: KubeObject): void {
  if (!current.metadata.deletionTimestamp) return;
  const added = listOf(dig(object, "metadata", "finalizers")).filter((one) => !current.metadata.finalizers?.includes(String(one)));
  if (added.length === 0) return;
  const names = added.map((one) => JSON.stringify(one)).join(", ");
  const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${names}}`;
  throw invalid(ask.kind.kind, ask.kind.group, ask.name, [{ reason: "FieldValueForbidden", message, field: "metadata.finalizers" }]);
}
