/**
 * Handles a request: read the body -> authenticate -> find the resource or endpoint -> faults -> verb ->
 * answer.
 */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { parseGoDuration } from "../../infra/duration.ts";
import { PROTOBUF } from "../../infra/kubernetes/protobuf.ts";
import { evict, requestToken } from "./subresources.ts";
import { type Answer, jsonAnswer } from "./answer.ts";
import { ApiError, badRequest, conflict, methodNotAllowed, statusError, tooManyRequests } from "./api-error.ts";
import type { Effect } from "./faults.ts";
import { numberOf } from "./objects.ts";
import { answerNonResource } from "./non-resource.ts";
import { statusAnswer } from "./protobuf/list.ts";
import { readProtobuf } from "./protobuf/read.ts";
import { get, list } from "./read.ts";
import type { Api } from "./api.ts";
import { type ApiRequest, parseTarget } from "./request.ts";
import { watch } from "./watch.ts";
import { create, patch, remove, removeCollection, update } from "./write.ts";

type Handler = (api: Api, request: ApiRequest) => Answer | Promise<Answer>;

/** By verb; creations of a subresource by its name. */
const HANDLERS: Record<string, Handler> = {
  get,
  list,
  create,
  update,
  patch,
  delete: remove,
  deletecollection: removeCollection,
  eviction: evict,
  token: requestToken,
};

const NOT_FOUND_PAGE: Answer = {
  code: 404,
  body: "404 page not found\n",
  headers: { "content-type": "text/plain; charset=utf-8" },
};

/** What is read of a request: an `IncomingMessage`, or one without a socket. */
interface Incoming {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly toArray: () => Promise<readonly unknown[]>;
}

/** Serves one request; never throws. */
export async function serve(api: Api, message: Incoming, response: ServerResponse): Promise<void> {
  const warnings: string[] = [];
  const answer = await handleRequest(api, { message, response, warnings }).catch((error: unknown) =>
    errorAnswer(error, message),
  );
  if (!answer || response.headersSent) return;
  const { code, headers } = answer;
  const warning = warnings.filter((text) => !/\p{Cc}/u.test(text)).map((text) => `299 - ${JSON.stringify(text)}`);
  response.writeHead(code, {
    "content-type": "application/json",
    date: dateOf(api),
    "content-length": Buffer.byteLength(answer.body),
    // Go sends headers in UTF-8.
    ...(warning.length > 0 && { warning: Buffer.from(warning.join(", ")).toString("latin1") }),
    ...headers,
  });
  response.end(answer.body);
}

/** By the emulator's clock; Node would use the machine's. Written once a second. */
function dateOf({ clock }: Api): string {
  const second = Math.floor(clock.now() / 1000);
  if (second !== lastDate.second) lastDate = { second, text: new Date(second * 1000).toUTCString() };
  return lastDate.text;
}
let lastDate = { second: NaN, text: "" };

function errorAnswer(error: unknown, { headers: { accept = "" } }: Incoming): Answer {
  const { status } =
    error instanceof ApiError ? error : statusError("InternalError", `Internal error occurred: ${String(error)}`);
  const seconds = numberOf(status.details?.["retryAfterSeconds"]);
  const answer: Answer = formOf(accept) === "protobuf" ? statusAnswer(status) : jsonAnswer(status.code, status);
  return { ...answer, headers: { ...answer.headers, ...(seconds && { "retry-after": String(seconds) }) } };
}

interface Exchange {
  readonly message: Incoming;
  readonly response: ServerResponse;
  readonly warnings: string[];
}

/** Returns undefined if the response is written elsewhere (watches) or the connection was broken (faults). */
async function handleRequest(api: Api, { message, response, warnings }: Exchange): Promise<Answer | undefined> {
  const { method = "GET", headers, url = "/" } = message;
  const end = url.includes("?") ? url.indexOf("?") : url.length;
  const pathname = url.slice(0, end);
  const searchParams = new URLSearchParams(url.slice(end));
  const { "content-type": contentType = "application/json", accept = "" } = headers;
  const body = await readBody(message, contentType);
  const user = await api.tokens.authenticate(headers.authorization?.replace(/^Bearer /, ""));
  const target = parseTarget(api.registry, method, { pathname, searchParams });
  if (!target) {
    const value = await answerNonResource(api, pathname, { body, user });
    return value ? jsonAnswer(method === "POST" ? 201 : 200, value) : NOT_FOUND_PAGE;
  }
  const dryRun = searchParams.getAll("dryRun").includes("All");
  const request: ApiRequest = {
    ...target,
    query: searchParams,
    form: formOf(accept),
    contentType,
    body,
    user,
    dryRun,
    now: api.clock.now,
    warnings,
  };
  return withinTimeout(api, searchParams.get("timeout") ?? "0", performRequest(api, request, response));
}

async function readBody(message: Incoming, type: string): Promise<unknown> {
  // Several times faster than node:stream/consumers.
  const body = Buffer.concat((await message.toArray()) as Buffer[]);
  if (body.length === 0) return {};
  if (type.includes("protobuf")) return readProtobuf(body);
  if (!type.includes("json")) throw statusError("UnsupportedMediaType", "415: Unsupported Media Type", {});
  try {
    return JSON.parse(body.toString());
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${String(error)}`);
  }
}

/** Reads from the Accept header how the client wants each object returned. */
function formOf(accept: string): ApiRequest["form"] {
  if (accept.includes("as=Table")) return "table";
  if (accept.includes("as=PartialObjectMetadata")) return "metadata";
  return accept.startsWith(PROTOBUF) ? "protobuf" : "object";
}

/** Rejects with 504 after `timeout` (a Go duration; none for 0). The work itself continues. */
async function withinTimeout<T>(api: Api, timeout: string, work: Promise<T>): Promise<T> {
  const ms = parseGoDuration(timeout);
  if (!ms) return work;
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const text = "Timeout: request did not complete within requested timeout - context deadline exceeded";
  const cancel = api.clock.after(ms, () => reject(statusError("Timeout", text, {})));
  return Promise.race([work, expired]).finally(cancel);
}

/** Throws the error of a fault that responds with one. */
function throwError(effect: Effect, request: ApiRequest): void {
  const { resource, name } = request;
  if (effect.kind === "conflict") throw conflict(resource, name);
  if (effect.kind === "forbidden") throw statusError("Forbidden", describeForbidden(request, effect.user));
  if (effect.kind === "error") throw statusError("InternalError", "Internal error occurred: injected fault");
  if (effect.kind === "tooMany")
    throw tooManyRequests("the server has received too many requests", effect.retryAfterSeconds);
}

function describeForbidden({ verb, resource, subresource, namespace, name }: ApiRequest, user?: string): string {
  if (user === undefined) return "it is forbidden: injected fault";
  const what = subresource ? `${resource}/${subresource}` : resource;
  const where = namespace ? `in the namespace "${namespace}"` : "at the cluster scope";
  return `${resource} "${name}" is forbidden: User "${user}" cannot ${verb} resource "${what}" in API group "" ${where}`;
}

async function performRequest(api: Api, request: ApiRequest, response: ServerResponse): Promise<Answer | undefined> {
  const effects = api.faults.strike(request);
  for (const effect of effects) {
    throwError(effect, request);
    if (effect.kind === "latency" && effect.ms > 0)
      await new Promise<void>((resolve) => api.clock.after(effect.ms, resolve));
    if (effect.kind === "dropBefore") return void response.destroy();
  }
  if (request.verb === "watch") return watch(api, request, response);
  const handle = HANDLERS[(request.verb === "create" && request.subresource) || request.verb];
  if (!handle) throw methodNotAllowed();
  const answer = await handle(api, request);
  if (effects.some(({ kind }) => kind === "dropAfter")) return void response.destroy();
  return answer;
}
