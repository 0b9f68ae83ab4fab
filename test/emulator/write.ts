/**
 * create, update and patch.
 *
 * An update goes round: read -> change -> mutate -> check -> store. When the object changed meanwhile it goes round again, admission
 * included, unless the request names the resourceVersion that it means (GuaranteedUpdate of the real server).
 */
import { parse as parseYaml } from "yaml";
import { randomUUID } from "node:crypto";
import { draftAnswer, objectAnswer } from "./answer.ts";
import type { Api } from "./api.ts";
import { alreadyExists, badRequest, conflict, forbidden, hasReason, notFound, refusal } from "./api-error.ts";
import { dig, isFields, listOf, timestamp } from "./objects.ts";
import type { Draft, Fields, KubeObject } from "./objects.ts";
import { jsonPatch, mergePatch } from "./patch.ts";
import type { Operation } from "./patch.ts";
import { apiVersionOf } from "./registry.ts";
import type { Answer, Ask } from "./request.ts";
import { strategicPatch } from "./strategic-patch.ts";
import { validate } from "./validation.ts";
import { withoutNulls } from "./versions.ts";
import { conform, hasStatus, unknownFields, viewOf } from "./views.ts";
import type { View } from "./views.ts";

/** The body as an object; JSON, or YAML where the content type says so. */
export function bodyOf(ask: Ask): Fields {
  let body: unknown;
  try {
    body = ask.contentType.includes("yaml") ? parseYaml(ask.body) : JSON.parse(ask.body || "null");
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${error instanceof Error ? error.message : ""}`);
  }
  if (!isFields(body)) throw badRequest("Request body must be a JSON object");
  return body;
}

/** The body as an object of the request's kind, in its namespace. */
function draftOf(ask: Ask, fields: Fields, expected = { apiVersion: apiVersionOf(ask.kind), kind: ask.kind.kind }): Draft {
  const { apiVersion = expected.apiVersion, kind = expected.kind, metadata, ...rest } = fields;
  if (apiVersion !== expected.apiVersion)
    throw badRequest(
      `the API version in the data (${String(apiVersion)}) does not match the expected API version (${expected.apiVersion})`,
    );
  if (kind !== expected.kind)
    throw badRequest(`the kind in the data (${String(kind)}) does not match the expected kind (${expected.kind})`);
  const given = isFields(metadata) ? metadata : {};
  const namespace = given["namespace"] || ask.namespace;
  if (ask.namespace !== undefined && namespace !== ask.namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  const draft = withoutNulls({ ...rest, ...expected, metadata: { ...given, ...(namespace ? { namespace } : {}) } });
  return isFields(draft)
    ? { ...draft, ...expected, metadata: isFields(draft["metadata"]) ? draft["metadata"] : {} }
    : { ...expected, metadata: {} };
}

const SUFFIX = "bcdfghjklmnpqrstvwxz2456789";

/** Five characters that spell no words (apimachinery's rand.String). */
function randomSuffix(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(5)), (byte) => SUFFIX[byte % SUFFIX.length]).join("");
}

function checkNamespace(api: Api, ask: Ask, name: string): void {
  if (ask.namespace === undefined) return;
  const namespace = api.store.get("namespaces", undefined, ask.namespace);
  if (!namespace) throw notFound("namespaces", ask.namespace);
  if (namespace.metadata.deletionTimestamp)
    throw forbidden(ask.resource, name, `unable to create new content in namespace ${ask.namespace} because it is being terminated`);
}

/** Unknown fields of a custom resource are refused, told as warnings or passed over, as `?fieldValidation=` says. */
function checkFields(ask: Ask, draft: Draft): void {
  const level = ask.query.get("fieldValidation") || "Warn";
  if (!ask.kind.custom || level === "Ignore" || ask.subresource === "scale") return;
  const texts = unknownFields(ask.kind, draft).map((path) => `unknown field "${path}"`);
  if (level !== "Strict") return void ask.warnings.push(...texts);
  const { kind, version } = ask.kind;
  if (texts.length > 0)
    throw badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: strict decoding error: ${texts.join(", ")}`);
}

export async function create(api: Api, ask: Ask): Promise<Answer> {
  const { kind, resource, namespace } = ask;
  const given = draftOf(ask, bodyOf(ask));
  if (kind.namespaced && namespace === undefined) throw badRequest("the server could not find the requested resource");
  if (given.metadata.resourceVersion) throw badRequest("resourceVersion should not be set on objects to be created");
  const { generateName } = given.metadata;
  const name = given.metadata.name || (generateName ? `${generateName}${randomSuffix()}` : "");
  checkFields(ask, given);
  checkNamespace(api, ask, name);
  if (hasStatus(kind)) delete given["status"];
  const uid = randomUUID();
  const metadata = {
    ...given.metadata,
    name,
    uid,
    creationTimestamp: timestamp(api.clock.now()),
    ...(kind.generation && { generation: 1 }),
  };
  const draft = conform(kind, { ...given, metadata });
  const options = optionsOf(ask, "CreateOptions");
  const asked = { ...ask, name };
  const mutated = await api.admission.mutate(asked, { operation: "CREATE", object: draft, options });
  const object = conform(kind, mutated ?? draft);
  validate(kind, object);
  await api.admission.check(asked, { operation: "CREATE", object, options });
  if (ask.dryRun) {
    if (api.store.get(resource, namespace, name)) throw alreadyExists(resource, name);
    return draftAnswer(ask, object, 201);
  }
  checkNamespace(api, ask, name);
  return objectAnswer(ask, api.store.create(resource, { ...object, metadata: { ...object.metadata, uid } }), 201);
}

/** The options of a write as admission sees them. */
export function optionsOf({ query }: Ask, kind: string): Fields {
  const texts = ["fieldManager", "fieldValidation"].flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : []));
  return {
    kind,
    apiVersion: "meta.k8s.io/v1",
    ...(query.has("dryRun") && { dryRun: query.getAll("dryRun") }),
    ...Object.fromEntries(texts),
  };
}

type Change = (seen: Draft) => Draft;

const SCALE = { apiVersion: "autoscaling/v1", kind: "Scale" };

function expectedOf(ask: Ask): { apiVersion: string; kind: string } {
  return ask.subresource === "scale" ? SCALE : { apiVersion: apiVersionOf(ask.kind), kind: ask.kind.kind };
}

export async function update(api: Api, ask: Ask): Promise<Answer> {
  const draft = draftOf(ask, bodyOf(ask), expectedOf(ask));
  if (draft.metadata.name && draft.metadata.name !== ask.name)
    throw badRequest(`the name of the object (${draft.metadata.name}) does not match the name on the URL (${ask.name})`);
  checkFields(ask, draft);
  return change(api, ask, "UpdateOptions", () => draft);
}

type Patch = (ask: Ask) => (target: unknown) => unknown;

const PATCHES: Readonly<Record<string, Patch>> = {
  "application/json-patch+json": (ask) => {
    const operations: readonly Operation[] = JSON.parse(ask.body);
    return (target) => jsonPatch(target, operations);
  },
  "application/merge-patch+json": (ask) => {
    const patch = bodyOf(ask);
    return (target) => mergePatch(target, patch);
  },
  "application/strategic-merge-patch+json": (ask) => {
    const patch = bodyOf(ask);
    return (target) => strategicPatch(target, patch);
  },
  "application/apply-patch+yaml": (ask) => {
    const applied = bodyOf(ask);
    return (target) => (ask.kind.custom ? mergePatch : strategicPatch)(target, applied);
  },
};

export async function patch(api: Api, ask: Ask): Promise<Answer> {
  const type = ask.contentType.split(";")[0]?.trim() ?? "";
  const accepted = Object.keys(PATCHES).filter((one) => !(ask.kind.custom && one.includes("strategic")));
  const prepare = accepted.includes(type) ? PATCHES[type] : undefined;
  if (!prepare)
    throw refusal(
      "UnsupportedMediaType",
      `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`,
      {},
    );
  const apply = prepare(ask);
  const isApply = type.startsWith("application/apply");
  if (isApply && !api.store.get(ask.resource, ask.namespace, ask.name)) return create(api, { ...ask, name: "" });
  return change(api, ask, "PatchOptions", (seen) => {
    const changed = apply(seen);
    if (!isFields(changed)) throw refusal("Invalid", "the server rejected our request due to an error in our request");
    const draft = draftOf(ask, changed, expectedOf(ask));
    checkFields(ask, draft);
    return draft;
  });
}

/** Patches give up after so many conflicts (maxRetryWhenPatchConflicts). */
const MAX_ROUNDS = 5;

async function change(api: Api, ask: Ask, optionsKind: string, makeChange: Change): Promise<Answer> {
  const { kind, resource, namespace, name } = ask;
  const view = viewOf(kind, ask.subresource);
  if (!view) throw refusal("MethodNotAllowed", "the server does not allow this method on the requested resource", {});
  const options = optionsOf(ask, optionsKind);
  for (let round = 1; ; round++) {
    const current = api.store.get(resource, namespace, name);
    if (!current) throw notFound(resource, name);
    const seen = view.read(current);
    const wanted = makeChange(seen);
    checkPreconditions(ask, wanted, current);
    const object = await admit(api, ask, view, current, wanted, options);
    try {
      const stored = api.store.update(resource, object, { expectedResourceVersion: current.metadata.resourceVersion, dryRun: ask.dryRun });
      return ask.subresource === "scale" ? draftAnswer(ask, view.read(stored)) : objectAnswer(ask, stored);
    } catch (error) {
      if (!hasReason(error, "Conflict") || round === MAX_ROUNDS) throw error;
    }
  }
}

function checkPreconditions(ask: Ask, { metadata }: Draft, current: KubeObject): void {
  if (metadata.uid && metadata.uid !== current.metadata.uid)
    throw conflict(
      ask.resource,
      ask.name,
      `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${current.metadata.uid}`,
    );
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
  await api.admission.check(ask, { operation: "UPDATE", object: seen(object), oldObject, options });
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
  const text = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((one) => `"${String(one)}"`).join(", ")}}`;
  throw refusal("Invalid", `${ask.kind.kind} "${ask.name}" is invalid: metadata.finalizers: ${text}`);
}
