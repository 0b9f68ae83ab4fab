/** delete, with preconditions, grace, propagation and dry run. */
import { deletedDetails, draftAnswer, objectAnswer, successAnswer } from "./answer.ts";
import type { Api } from "./api.ts";
import { notFound } from "./api-error.ts";
import { dig, numberOf, textOf } from "./objects.ts";
import type { Fields } from "./objects.ts";
import type { Answer, Ask } from "./request.ts";
import type { RemoveOptions } from "./store.ts";
import { bodyOf, optionsOf } from "./body.ts";

/** Kinds whose delete answers the object instead of a Status (ReturnDeletedObject). */
const ANSWERS_OBJECT = new Set(["pods", "services", "serviceaccounts", "persistentvolumeclaims"]);

/** DeleteOptions from the body or, where there is none, from the query. */
export function deleteOptions(ask: Ask, body: Fields): RemoveOptions {
  const fromQuery = ask.query.get("gracePeriodSeconds");
  const grace = numberOf(body["gracePeriodSeconds"]) ?? (fromQuery === null ? undefined : Number(fromQuery));
  const policy = textOf(body["propagationPolicy"]) ?? ask.query.get("propagationPolicy") ?? undefined;
  const uid = textOf(dig(body, "preconditions", "uid"));
  const resourceVersion = textOf(dig(body, "preconditions", "resourceVersion"));
  return {
    ...(grace !== undefined && { gracePeriodSeconds: grace }),
    ...(policy !== undefined && { propagationPolicy: policy }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
}

export async function remove(api: Api, ask: Ask): Promise<Answer> {
  const { store, admission } = api;
  const body = ask.body ? bodyOf(ask) : {};
  const current = store.get(ask.resource, ask.namespace, ask.name);
  if (!current) throw notFound(ask.resource, ask.name);
  const options = { ...optionsOf(ask, "DeleteOptions"), ...body };
  await admission.mutate(ask, { operation: "DELETE", oldObject: current, options });
  await admission.check(ask, { operation: "DELETE", oldObject: current, options });
  const isDryRun = ask.dryRun || Array.isArray(body["dryRun"]);
  if (isDryRun) return ANSWERS_OBJECT.has(ask.resource) ? draftAnswer(ask, current) : successAnswer(200, deletedDetails(ask, current));
  const left = store.remove(ask.resource, ask.namespace, ask.name, deleteOptions(ask, body));
  const isGone = !store.get(ask.resource, ask.namespace, ask.name);
  return isGone && !ANSWERS_OBJECT.has(ask.resource) ? successAnswer(200, deletedDetails(ask, left)) : objectAnswer(ask, left);
}
