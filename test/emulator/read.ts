/** get and list. A list answers the newest state, whatever resourceVersion it asks for; its later pages are of the version of the first. */
import { type Answer, listText, objectAnswer } from "./answer.ts";
import { badRequest, notFound } from "./api-error.ts";
import type { KubeObject } from "./objects.ts";
import type { Api, Ask } from "./request.ts";
import { selectionOf } from "./selectors.ts";
import { objectKey, type Store } from "./store.ts";
import { shown } from "./views.ts";

/** The object that the request is about; throws NotFound. */
export function existing({ store }: Api, { resource, namespace, name }: Ask): KubeObject {
  const object = store.get(resource, namespace, name);
  if (!object) throw notFound(resource, name);
  return object;
}

export function get(api: Api, ask: Ask): Answer {
  return objectAnswer(ask, shown(ask, existing(api, ask)));
}

/** The store as reads saw it at an earlier resourceVersion. */
export function asOf(store: Store, at: number): Store {
  const list: Store["list"] = (resource, namespace, version = at) => store.list(resource, namespace, version);
  const get: Store["get"] = (resource, namespace, name) => list(resource, namespace).find(({ metadata }) => metadata.name === name);
  return { ...store, list, get, version: () => at };
}

const keyOf = ({ metadata }: KubeObject): string => objectKey(metadata.namespace, metadata.name);

/** What a continue token says: the version of the list, and the key of the last object of the page before. */
function readToken(token: string): [at: number, after: string] {
  const [at, after] = Buffer.from(token, "base64url").toString().split(" ");
  if (after === undefined) throw badRequest("continue key is not valid");
  return [Number(at), after];
}

export function list({ store }: Api, ask: Ask): Answer {
  const { query, resource, namespace } = ask;
  const token = query.get("continue");
  const [at, after] = token ? readToken(token) : [store.version(), ""];
  const selection = selectionOf(resource, query) ?? (() => true);
  const rest = store.list(resource, namespace, at).filter((object) => keyOf(object) > after && selection(object));
  const page = rest.slice(0, Number(query.get("limit")) || rest.length);
  const last = page.at(-1);
  const hasMore = last && page.length < rest.length;
  const metadata = {
    resourceVersion: String(at),
    ...(hasMore && { continue: Buffer.from(`${at} ${keyOf(last)}`).toString("base64url") }),
  };
  return { code: 200, body: listText(ask, page, metadata) };
}
