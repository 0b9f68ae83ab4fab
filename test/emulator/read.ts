/** get and list. A list answers the newest state, whatever resourceVersion it asks for; its later pages are of the version of the first. */
import { objectAnswer } from "./answer.ts";
import type { Api } from "./api.ts";
import { badRequest, hasReason, notFound, refusal } from "./api-error.ts";
import { objectKey } from "./store.ts";
import { dig, numberOf, textOf } from "./objects.ts";
import type { KubeObject } from "./objects.ts";
import { apiVersionOf } from "./registry.ts";
import type { Answer, Ask } from "./request.ts";
import { selectionOf } from "./selectors.ts";
import { tableText } from "./table/table.ts";
import { itemText, metadataText } from "./wire.ts";

/** `at` answers as of an earlier resourceVersion. */
export function get(api: Api, ask: Ask, at?: number): Answer {
  const object =
    at === undefined
      ? api.store.get(ask.resource, ask.namespace, ask.name)
      : api.store.list(ask.resource, ask.namespace, at).find(({ metadata }) => metadata.name === ask.name);
  if (!object) throw notFound(ask.resource, ask.name);
  return objectAnswer(ask, object);
}

interface Start {
  readonly at: number;
  /** Key of the last object of the page before. */
  readonly after: string;
}

function readToken(text: string): Start {
  try {
    const token: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
    const at = numberOf(dig(token, "rv"));
    const after = textOf(dig(token, "start"));
    if (at !== undefined && after !== undefined) return { at, after };
  } catch {
    // told below
  }
  throw badRequest("invalid continue token: continue key is not valid");
}

const token = (at: number, after: string): string =>
  Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: at, start: after })).toString("base64url");

const TOO_OLD = "The provided continue parameter is too old to display a consistent list result.";

function keyOf({ metadata }: KubeObject): string {
  return objectKey(metadata.namespace, metadata.name);
}

function snapshotAt(api: Api, ask: Ask, at: number, isContinued: boolean): KubeObject[] {
  try {
    return api.store.list(ask.resource, ask.namespace, at);
  } catch (error) {
    throw isContinued && hasReason(error, "Expired") ? refusal("Expired", TOO_OLD) : error;
  }
}

/** The resourceVersion of a query, undefined when it has none. `refuse` makes the error of one that is no number. */
export function versionIn(query: URLSearchParams, refuse: (why: string) => Error): number | undefined {
  const text = query.get("resourceVersion") ?? "";
  if (!/^\d*$/.test(text)) {
    const quoted = JSON.stringify(text);
    throw refuse(`resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`);
  }
  return text === "" ? undefined : Number(text);
}

export function list(api: Api, ask: Ask, staleAt?: number): Answer {
  const { query } = ask;
  const continued = query.get("continue");
  versionIn(query, (why) => badRequest(`invalid resource version: ${why}`));
  const start = continued ? readToken(continued) : { at: staleAt ?? api.store.version(), after: "" };
  const selection = selectionOf(ask.resource, query);
  const all = snapshotAt(api, ask, start.at, continued !== null);
  const matching = selection ? all.filter(selection) : all;
  const rest = start.after ? matching.filter((object) => keyOf(object) > start.after) : matching;
  const limit = Number(query.get("limit") ?? 0) || rest.length;
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const metadata: ListMetadata = {
    resourceVersion: String(start.at),
    ...(last &&
      rest.length > limit && { continue: token(start.at, keyOf(last)), ...(!selection && { remainingItemCount: rest.length - limit }) }),
  };
  return { code: 200, body: listText(ask, page, metadata) };
}

export interface ListMetadata {
  readonly resourceVersion: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export function listText(ask: Ask, items: readonly KubeObject[], metadata: ListMetadata): string {
  if (ask.form === "table") return tableText(ask, items, metadata);
  if (ask.form === "metadata")
    throw refusal("NotAcceptable", `you requested PartialObjectMetadata, but the requested object is a list (${ask.kind.kind}List)`);
  const [kind, apiVersion, text] =
    ask.form === "metadataList"
      ? ["PartialObjectMetadataList", "meta.k8s.io/v1", metadataText]
      : [`${ask.kind.kind}List`, apiVersionOf(ask.kind), (object: KubeObject) => itemText(ask.kind, object)];
  return `{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":${JSON.stringify(metadata)},"items":[${items.map(text).join(",")}]}`;
}
