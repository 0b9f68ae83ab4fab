/** create: defaults -> mutate -> defaults again -> validate -> check -> store. */
import { randomUUID } from "node:crypto";
import { draftAnswer, objectAnswer } from "./answer.ts";
import type { Api } from "./api.ts";
import { alreadyExists, forbidden, notFound, plainError } from "./api-error.ts";
import { bodyOf, draftOf, optionsOf } from "./body.ts";
import { timestamp } from "./objects.ts";
import type { Answer, Ask } from "./request.ts";
import { validate } from "./validation.ts";
import { conform, hasStatus } from "./views.ts";

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

/** Creates what the body says, unless `given` says otherwise. */
export async function create(api: Api, ask: Ask, given = draftOf(ask, bodyOf(ask))): Promise<Answer> {
  const { kind, resource, namespace } = ask;
  if (given.metadata.resourceVersion) throw plainError("resourceVersion should not be set on objects to be created");
  const { generateName } = given.metadata;
  const name = given.metadata.name || (generateName ? `${generateName}${randomSuffix()}` : "");
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
