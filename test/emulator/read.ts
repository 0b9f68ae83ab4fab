/**
 * get and list. A list returns the newest state and ignores the request's resourceVersion; all its pages
 * have the version of the first.
 */
import { type Answer, listAnswer, objectAnswer } from "./answer.ts";
import { badRequest, notFound } from "./api-error.ts";
import type { KubeObject } from "./objects.ts";
import type { Api } from "./api.ts";
import type { ApiRequest } from "./request.ts";
import { requestSelector } from "./selectors.ts";
import { objectKey } from "./store.ts";
import { viewOf } from "./views.ts";

/** Returns the object that the request names; throws NotFound. */
export function getExisting({ store }: Api, { resource, namespace, name }: ApiRequest): KubeObject {
  const object = store.get(resource, namespace, name);
  if (!object) throw notFound(resource, name);
  return object;
}

export function get(api: Api, request: ApiRequest): Answer {
  return objectAnswer(request, viewOf(request, getExisting(api, request)));
}

const keyOf = ({ metadata }: KubeObject): string => objectKey(metadata.namespace, metadata.name);

/** Parses a continue token: the list's version, and the key of the previous page's last object. */
function parseContinue(token: string): [at: number, after: string] {
  const [at, after] = Buffer.from(token, "base64url").toString().split(" ");
  if (after === undefined) throw badRequest("continue key is not valid");
  return [Number(at), after];
}

export function list({ store }: Api, request: ApiRequest): Answer {
  const { query, resource, namespace } = request;
  const token = query.get("continue");
  const [at, after] = token ? parseContinue(token) : [store.version(), ""];
  const selects = requestSelector(resource, query);
  const all = store.list(resource, namespace, at);
  const rest = token ? all.filter((object) => keyOf(object) > after) : all;
  const limit = Number(query.get("limit")) || rest.length;
  const selected = selects ? rest.filter(selects) : rest;
  const page = selected.length > limit ? selected.slice(0, limit) : selected;
  const last = page.at(-1);
  // Whether a selector matches any more is not known.
  const hasMore = last && page.length === limit && last !== rest.at(-1);
  const metadata = {
    resourceVersion: String(at),
    ...(request.kind.custom && { continue: "" }),
    ...(hasMore && { continue: Buffer.from(`${at} ${keyOf(last)}`).toString("base64url") }),
    // Unknown with a selector.
    ...(hasMore && !selects && { remainingItemCount: rest.length - page.length }),
  };
  return listAnswer(request, page, metadata);
}
