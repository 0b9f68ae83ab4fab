/**
 * The flow of a request: read the body -> authenticate -> fixed pages and reviews -> find the resource -> faults -> verb -> answer.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { jsonAnswer } from "./answer.ts";
import type { Api } from "./api.ts";
import { ApiError, conflict, refusal, tooMany } from "./api-error.ts";
import { fieldsOf, plainText } from "./objects.ts";
import { pageOf } from "./pages.ts";
import { protobufToJson } from "./protobuf.ts";
import { get, list } from "./read.ts";
import { remove } from "./remove.ts";
import { targetOf } from "./request.ts";
import type { Answer, Ask } from "./request.ts";
import { create } from "./create.ts";
import type { Effect } from "./faults.ts";
import { createBelow, getBelow } from "./subresources.ts";
import { watch } from "./watch.ts";
import { formOf } from "./wire.ts";
import { patch, update } from "./update.ts";

type Handler = (api: Api, ask: Ask, staleAt?: number) => Answer | Promise<Answer>;

const HANDLERS: Readonly<Record<Exclude<Ask["verb"], "watch">, Handler>> = {
  get: (api, ask, at) => (ask.subresource ? getBelow(api, ask, at) : get(api, ask, at)),
  list,
  create: (api, ask) => (ask.subresource ? createBelow(api, ask) : create(api, ask)),
  update,
  patch,
  delete: remove,
};

/** The body as text; protobuf is turned into JSON. */
async function readBody(request: IncomingMessage): Promise<string> {
  const body = await buffer(request);
  const type = request.headers["content-type"] ?? "application/json";
  if (type.includes("protobuf") && body.length > 0) return protobufToJson(body);
  if (body.length > 0 && !type.includes("json")) throw refusal("UnsupportedMediaType", "415: Unsupported Media Type", {});
  return body.toString();
}

const TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews";

/** A resource that only answers a question: whose token is this? */
async function reviewToken({ tokens }: Api, body: string): Promise<Answer> {
  const review = fieldsOf(JSON.parse(body));
  return jsonAnswer(201, { metadata: {}, ...review, status: await tokens.review(review["spec"]) });
}

const ACCEPTED = "406: Not Acceptable\n\nAvailable representations: application/json";

/** Serves one request; never throws. */
export async function serve(api: Api, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const warnings: string[] = [];
  try {
    const answer = await answerTo(api, request, response, warnings);
    if (answer) send(response, answer, warnings);
  } catch (error) {
    if (response.headersSent || response.destroyed) return void response.destroy();
    send(response, failure(error), warnings);
  }
}

/** Undefined when the response is, or will be, written otherwise. */
async function answerTo(api: Api, request: IncomingMessage, response: ServerResponse, warnings: string[]): Promise<Answer | undefined> {
  const url = new URL(request.url ?? "/", "https://localhost");
  const method = request.method ?? "GET";
  const { headers } = request;
  const body = await readBody(request);
  const page = pageOf(api, url);
  if (page) return page;
  const user = await api.tokens.authenticate(headers.authorization?.replace(/^Bearer /, ""));
  if (method === "POST" && url.pathname === TOKEN_REVIEWS) return reviewToken(api, body);
  const target = targetOf(api.registry, method, url);
  if (!target) return { code: 404, body: "404 page not found\n", contentType: "text/plain; charset=utf-8" };
  const form = formOf(headers.accept);
  if (!form) throw refusal("NotAcceptable", ACCEPTED, {});
  const contentType = headers["content-type"] ?? "application/json";
  const dryRun = url.searchParams.getAll("dryRun").includes("All");
  const now = (): number => api.clock.now();
  const ask: Ask = { ...target, query: url.searchParams, form, contentType, body, user, dryRun, now, warnings };
  return ask.verb === "watch" ? perform(api, ask, response) : withinTimeout(api, ask, perform(api, ask, response));
}

/** 504 when `?timeout=` ("500ms", "10s") has passed; what was begun goes on. */
async function withinTimeout<T>(api: Api, ask: Ask, work: Promise<T>): Promise<T> {
  const given = ask.query.get("timeout") ?? "0";
  const ms = Number.parseFloat(given) * (given.endsWith("ms") ? 1 : 1000);
  if (ms === 0) return work;
  let cancel = (): void => {};
  const expired = new Promise<never>((_resolve, reject) => {
    const text = "Timeout: request did not complete within requested timeout - context deadline exceeded";
    cancel = api.clock.after(ms, () => reject(refusal("Timeout", text, {})));
  });
  return Promise.race([work, expired]).finally(() => cancel());
}

const REFUSALS: Readonly<Partial<Record<Effect["kind"], (ask: Ask, effect: Effect) => ApiError>>> = {
  conflict: (ask) => conflict(ask.resource, ask.name),
  error: () => refusal("InternalError", "Internal error occurred: injected fault"),
  tooMany: (_ask, effect) =>
    tooMany(
      "the server has received too many requests and has asked us to try again later",
      "retryAfterSeconds" in effect ? effect.retryAfterSeconds : 1,
    ),
};

async function perform(api: Api, ask: Ask, response: ServerResponse): Promise<Answer | undefined> {
  const effects = api.faults.strike(ask);
  let staleAt: number | undefined;
  for (const effect of effects) {
    if (effect.kind === "latency") await new Promise<void>((resolve) => api.clock.after(effect.ms, resolve));
    if (effect.kind === "dropBefore") return void response.destroy();
    if (effect.kind === "stale") staleAt = effect.resourceVersion;
    const refuse = REFUSALS[effect.kind];
    if (refuse) throw refuse(ask, effect);
  }
  if (ask.verb === "watch") {
    watch(api, ask, response);
    return undefined;
  }
  const answer = await HANDLERS[ask.verb](api, ask, staleAt);
  if (effects.some(({ kind }) => kind === "dropAfter")) return void response.destroy();
  return answer;
}

function failure(error: unknown): Answer {
  const { status } =
    error instanceof ApiError ? error : refusal("InternalError", `Internal error occurred: ${error instanceof Error ? error.stack : ""}`);
  const seconds = status.details?.["retryAfterSeconds"];
  return {
    code: status.code,
    body: JSON.stringify(status),
    ...(seconds !== undefined && { headers: { "retry-after": plainText(seconds) } }),
  };
}

function send(
  response: ServerResponse,
  { code, body, contentType = "application/json", headers = {} }: Answer,
  warnings: readonly string[],
): void {
  if (warnings.length > 0)
    response.setHeader(
      "warning",
      warnings.map((text) => `299 - ${JSON.stringify(text)}`),
    );
  const text = contentType.startsWith("application/json") ? `${body.toString()}\n` : body;
  response.writeHead(code, {
    "content-type": contentType,
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-cache, private",
    ...headers,
  });
  response.end(text);
}
