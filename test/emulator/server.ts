/** The flow of a request: read the body -> authenticate -> find the resource, or a page -> faults -> verb -> answer. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { parseGoDuration } from "../../infra/duration.ts";
import { evict, requestToken } from "./acts.ts";
import { type Answer, jsonAnswer } from "./answer.ts";
import { ApiError, badRequest, conflict, notAllowed, refusal, tooMany } from "./api-error.ts";
import { numberOf } from "./objects.ts";
import { pageOf } from "./pages.ts";
import { readProtobuf } from "./protobuf.ts";
import { asOf, get, list } from "./read.ts";
import { type Api, type Ask, targetOf } from "./request.ts";
import { watch } from "./watch.ts";
import { create, patch, remove, update } from "./write.ts";

type Handler = (api: Api, ask: Ask) => Answer | Promise<Answer>;

/** By verb, or by what is created below an object. */
const HANDLERS: Record<string, Handler> = { get, list, create, update, patch, delete: remove, eviction: evict, token: requestToken };

const NO_PAGE: Answer = { code: 404, body: "404 page not found\n", headers: { "content-type": "text/plain; charset=utf-8" } };

/** Serves one request; never throws. */
export async function serve(api: Api, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const warnings: string[] = [];
  const answer = await answerTo(api, request, response, warnings).catch(refusalAnswer);
  if (!answer || response.headersSent) return;
  const { code, headers } = answer;
  const warning = warnings.filter((text) => !/\p{Cc}/u.test(text)).map((text) => `299 - ${JSON.stringify(text)}`);
  const body = Buffer.from(answer.body);
  response.writeHead(code, {
    "content-type": "application/json",
    date: dateOf(api),
    "content-length": body.length,
    // As Go sends it: in UTF-8.
    ...(warning.length > 0 && { warning: Buffer.from(warning.join(", ")).toString("latin1") }),
    ...headers,
  });
  response.end(body);
}

/** By its own clock; Node would take the machine's. */
const dateOf = ({ clock }: Api): string => new Date(clock.now()).toUTCString();

function refusalAnswer(error: unknown): Answer {
  const { status } = error instanceof ApiError ? error : refusal("InternalError", `Internal error occurred: ${String(error)}`);
  const seconds = numberOf(status.details?.["retryAfterSeconds"]);
  return { ...jsonAnswer(status.code, status), ...(seconds && { headers: { "retry-after": String(seconds) } }) };
}

/** Undefined when the response is, or will be, written otherwise. */
async function answerTo(api: Api, request: IncomingMessage, response: ServerResponse, warnings: string[]): Promise<Answer | undefined> {
  const url = new URL(request.url ?? "/", "https://localhost");
  const { method = "GET", headers } = request;
  const { "content-type": contentType = "application/json", accept = "" } = headers;
  const body = await readBody(request, contentType);
  const user = await api.tokens.authenticate(headers.authorization?.replace(/^Bearer /, ""));
  const target = targetOf(api.registry, method, url);
  if (!target) {
    const page = await pageOf(api, url.pathname, body);
    return page ? jsonAnswer(method === "POST" ? 201 : 200, page) : NO_PAGE;
  }
  const query = url.searchParams;
  const dryRun = query.getAll("dryRun").includes("All");
  const ask: Ask = { ...target, query, form: formOf(accept), contentType, body, user, dryRun, now: api.clock.now, warnings };
  return withinTimeout(api, query.get("timeout") ?? "0", perform(api, ask, response));
}

async function readBody(request: IncomingMessage, type: string): Promise<unknown> {
  const body = await buffer(request);
  if (body.length === 0) return {};
  if (type.includes("protobuf")) return readProtobuf(body);
  if (!type.includes("json")) throw refusal("UnsupportedMediaType", "415: Unsupported Media Type", {});
  try {
    return JSON.parse(body.toString());
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${String(error)}`);
  }
}

/** What the client wants back of each object, by its Accept header. */
function formOf(accept: string): Ask["form"] {
  if (accept.includes("as=Table")) return "table";
  return accept.includes("as=PartialObjectMetadata") ? "metadata" : "object";
}

/** 504 when `?timeout=` has passed; what was begun goes on. */
async function withinTimeout<T>(api: Api, given: string, work: Promise<T>): Promise<T> {
  const ms = parseGoDuration(given);
  if (!ms) return work;
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const text = "Timeout: request did not complete within requested timeout - context deadline exceeded";
  const cancel = api.clock.after(ms, () => reject(refusal("Timeout", text, {})));
  return Promise.race([work, expired]).finally(cancel);
}

async function perform(api: Api, ask: Ask, response: ServerResponse): Promise<Answer | undefined> {
  const effects = api.faults.strike(ask);
  let { store } = api;
  for (const effect of effects) {
    if (effect.kind === "latency") await new Promise<void>((resolve) => api.clock.after(effect.ms, resolve));
    if (effect.kind === "dropBefore") return void response.destroy();
    if (effect.kind === "conflict") throw conflict(ask.resource, ask.name);
    if (effect.kind === "error") throw refusal("InternalError", "Internal error occurred: injected fault");
    if (effect.kind === "tooMany") throw tooMany("the server has received too many requests", effect.retryAfterSeconds);
    if (effect.kind === "stale" && ["get", "list"].includes(ask.verb)) store = asOf(store, effect.resourceVersion);
  }
  if (ask.verb === "watch") return watch(api, ask, response);
  const handle = HANDLERS[(ask.verb === "create" && ask.subresource) || ask.verb];
  if (!handle) throw notAllowed();
  const answer = await handle({ ...api, store }, ask);
  if (effects.some(({ kind }) => kind === "dropAfter")) return void response.destroy();
  return answer;
}
