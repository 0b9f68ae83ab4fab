/**
 * The network between the processes, the API server, the webhooks and the pods: every leg of a call is an event, and
 * may fail.
 *
 *   sent -> (lost, killed, slow) -> applied -> (lost, killed, slow) -> answered
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Connection } from "../../infra/kubernetes/connection.ts";
import type { OpenRequest } from "../../infra/http.ts";
import type { Handler } from "../../functions/http/rim.ts";
import type { PostReview } from "../emulator/admission/call-webhook.ts";
import { parseTarget } from "../emulator/request.ts";
import type { Api } from "../emulator/api.ts";
import type { Mount } from "./certificates/trust.ts";
import { answerExpired, answerWith, breakOff } from "./answers.ts";
import type { Draw } from "./draw.ts";
import {
  type Answering,
  type Client,
  type HostAnswer,
  openOver,
  reset,
  type Sent,
  serverEnd,
  serveSent,
} from "../emulator/in-process.ts";
import { answerOfOthers } from "./others.ts";
import type { Process } from "./process.ts";
import type { Schedule } from "./schedule.ts";
import type { Fault } from "./shape.ts";

/** Who calls, what, and when the call left. */
export interface Caller {
  readonly actor: string;
  readonly call: string;
  readonly sentAt?: number;
}

/** What happens to a call, for a while. */
interface Disturbance {
  /** It is refused with this code, and has no effect. */
  readonly refusedWith?: number;
  /** Milliseconds between the head of an answer and its body. */
  readonly bodyLateMs?: number;
}

/** Beside the faults that a seed draws; undefined for a call that is not disturbed. */
type Disturb = (actor: string, sent: Sent) => Disturbance | undefined;

export interface NetworkOptions {
  readonly schedule: Schedule;
  readonly draw: Draw;
  /** True if this fault happens at this call site now. */
  readonly strikes: (fault: Fault, site: string) => boolean;
  readonly onCall: (caller: Caller, sent: Sent, status: number) => void;
  /** A request leaves a process, also one to a pod or to Prometheus. */
  readonly onSent?: ((caller: Caller, sent: Sent) => void) | undefined;
  /** Answers requests to pods and to Prometheus; undefined if nobody listens there. */
  readonly hosts: (sent: Sent) => HostAnswer | "silent" | undefined;
  /** Objects in an answer to a list, at most. */
  readonly pageSize: number | undefined;
  /** The webhook servers that run. */
  readonly servers: () => readonly WebhookServer[];
  /** By which the API server knows an actor, by its name without a number. */
  readonly tokenOf: (actor: string) => string;
  readonly onReview: (review: Review) => void;
  /** A review reaches a webhook server. */
  readonly onArrival: (path: string, sent: string, server: string) => void;
  /** The API server gets no answer to this review: it fails open under `Ignore`. */
  readonly onUnanswered: (path: string, sent: string) => void;
  /** Why the API server does not trust this server by the bundle; undefined if it does. */
  readonly whyNotTrusted: (server: WebhookServer, ca: Buffer | string | undefined) => string | undefined;
  /** A handshake with a webhook server, for a call of this path, and what was wrong with it. */
  readonly onHandshake: (path: string, problem: string | undefined) => void;
}

/** A request to a webhook, and what it answered. */
export interface Review {
  readonly path: string;
  readonly sent: string;
  readonly status: number;
  readonly answer: string;
  /** By how many milliseconds the answer left the webhook after its deadline (§8.3); negative before it. */
  readonly lateMs: number;
}

export interface WebhookServer {
  readonly process: Process;
  readonly routes: ReadonlyMap<string, Handler>;
  readonly mount: Mount;
}

/** Whose call the API server handles right now. */
export const callers = new AsyncLocalStorage<Caller>();

const QUICK_MS = 3;
const SLOW_MS = 40_000;
const MUTED_WITHIN_MS = 20_000;
/** The rest of its time is for the way of a webhook's answer. */
const ANSWER_SHARE = 0.9;

export function createNetwork(options: NetworkOptions) {
  const { schedule, draw, strikes, tokenOf } = options;
  const quick = (): number => 1 + draw.below(QUICK_MS);
  const slow = (): number => draw.of([500, 3000, 15_000, SLOW_MS]);
  /** Set once the API server is there: its webhooks are called over this network. */
  let api: Api | undefined;
  const disturbs = new Set<Disturb>();
  const disturbanceOf = (process: Process, sent: Sent): Disturbance => {
    for (const disturb of disturbs) {
      const found = disturb(process.name, sent);
      if (found) return found;
    }
    return {};
  };

  /** Handles a request at the API server, and hands the answer on in order. */
  function apply(caller: Caller, sent: Sent, answering: Answering): () => void {
    if (!api) throw new Error("no API server");
    const served = api;
    return callers.run(caller, () => serveSent(served, sent, answering));
  }

  /** Somebody else writes the object, just before the call takes effect. */
  function touch({ method, path }: Sent): void {
    const target = api && findTarget(api, method, path);
    const object = target && api?.store.get(target.resource, target.namespace, target.name);
    if (!object) return;
    const annotations = { ...object.metadata.annotations, "sim/touched": String(schedule.now()) };
    api?.store.update(target.resource, { ...object, metadata: { ...object.metadata, annotations } });
  }

  function sendToApi(process: Process): (sent: Sent, client: Client) => void {
    return (asked, client) => {
      const sent = paged(asked, options.pageSize);
      const { call, site: place } = namesOf(sent);
      const site = `${kindOf(process.name)} ${place}`;
      const caller = { actor: process.name, call, sentAt: schedule.now() };
      options.onSent?.(caller, sent);
      const deliver = inOrder(process, quick);
      if (strikes("frozen", site)) process.freeze(draw.of([1000, 12_000, 45_000]));
      if (strikes("killBefore", site)) return process.kill();
      if (strikes("requestLost", site)) return deliver(slowOr(quick), () => client.fail(reset()));
      const arrival = strikes("slowRequest", site) ? slow() : quick();
      // In flight: neither the death of the process nor the closing of its connection stops it.
      schedule.after(arrival, () => {
        if (client.closed && draw.chance(0.5)) return;
        if (strikes("throttled", site)) return deliver(quick(), () => answerWith(client, 429));
        if (strikes("serverError", site)) return deliver(quick(), () => answerWith(client, 500));
        if (sent.method !== "GET" && sent.method !== "POST" && strikes("conflict", site)) touch(sent);
        const lost = strikes("answerLost", site);
        const lateMs = strikes("slowAnswer", site) ? slow() : 0;
        const killed = strikes("killAfter", site);
        const isWatch = sent.path.includes("watch=");
        const isExpired = (isWatch || sent.path.includes("continue=")) && strikes("expired", site);
        if (isExpired) return deliver(quick(), () => answerExpired(client, isWatch && draw.chance(0.5)));
        const cut = sent.method === "GET" && strikes("bodyCut", site);
        // From then on the connection stands, and nothing comes over it, not even its end.
        const mutedAt =
          isWatch && strikes("watchMuted", site) ? schedule.now() + draw.below(MUTED_WITHIN_MS) : Infinity;
        const eventsLateMs = isWatch && strikes("watchLate", site) ? slow() : 0;
        const isMuted = (): boolean => schedule.now() >= mutedAt;
        const { bodyLateMs = 0, refusedWith } = disturbanceOf(process, sent);
        if (refusedWith !== undefined) return deliver(quick(), () => answerWith(client, refusedWith));
        const answering: Answering = {
          head(status, headers) {
            options.onCall(caller, sent, status);
            if (killed && !isWatch) return process.kill();
            if (!lost) deliver(quick() + lateMs, () => client.head(status, headers));
            else deliver(quick(), () => client.fail(reset()));
          },
          chunk: (data) => {
            if (isMuted()) return;
            if (cut) deliver(0, () => breakOff(client, data));
            else if (!lost) deliver(bodyLateMs + eventsLateMs, () => client.chunk(data));
          },
          end: () => void (lost || isMuted() || deliver(0, () => client.end())),
          destroy: () => void (isMuted() || deliver(quick(), () => client.fail(reset()))),
        };
        const close = apply(caller, sent, answering);
        client.onClose(close);
        process.onDeath(close);
        if (isWatch && strikes("watchCut", site))
          schedule.after(draw.between(1, 20_000), () => deliver(0, () => client.fail(reset())));
      });
    };
  }
  const slowOr = (quickly: () => number): number => (draw.chance(0.3) ? slow() : quickly());

  function sendToHost(process: Process): (sent: Sent, client: Client) => void {
    return (sent, client) => {
      const isPrometheus = sent.host.startsWith("prometheus");
      const call = `${sent.method} http://${sent.host}${sent.path}`;
      options.onSent?.({ actor: process.name, call, sentAt: schedule.now() }, sent);
      const site = `${kindOf(process.name)} ${sent.method} ${isPrometheus ? "prometheus" : "pod"}`;
      const deliver = inOrder(process, quick);
      schedule.after(quick(), () => {
        const refused = !isPrometheus && strikes("podRefuses", site);
        const answer = refused ? { status: 500, body: "" } : options.hosts(sent);
        if (!answer) return deliver(quick(), () => client.fail(reset("connect ECONNREFUSED")));
        if (answer === "silent" || (isPrometheus && strikes("prometheusLost", site))) return;
        const lateMs = (answer.lateMs ?? 0) + (strikes("slowAnswer", site) ? slow() : 0);
        deliver(quick() + lateMs, () => answerWith(client, answer.status, answer.body));
      });
    };
  }

  /** A review from the API server to one of the webhook servers. */
  const post: PostReview = (url, { timeoutMs, ca }, data) =>
    new Promise((resolve, reject) => {
      const site = `apiserver ${url.pathname}`;
      const servers = options.servers();
      const others = answerOfOthers(url, data);
      if (others) return void schedule.after(others.ms, () => resolve(others.body));
      let isOver = false;
      const fail = (text: string): void => {
        if (isOver) return;
        isOver = true;
        options.onUnanswered(url.pathname, data);
        reject(new Error(text));
      };
      const answer = (body: string): void => {
        isOver = true;
        resolve(body);
      };
      const cancel = schedule.after(timeoutMs, () => fail(`Post "${url.href}": context deadline exceeded`));
      if (servers.length === 0 || strikes("webhookUnreachable", site))
        return void schedule.after(quick(), () => (cancel(), fail(`Post "${url.href}": connect: connection refused`)));
      const server = draw.of(servers);
      const { process, routes } = server;
      const problem = options.whyNotTrusted(server, ca);
      options.onHandshake(url.pathname, problem);
      if (problem !== undefined)
        return void schedule.after(quick(), () => (cancel(), fail(`Post "${url.href}": ${problem}`)));
      const died = (): void => void schedule.after(quick(), () => (cancel(), fail(`Post "${url.href}": EOF`)));
      process.onDeath(died);
      let text = "";
      let status = 0;
      const sent: Sent = {
        method: "POST",
        host: url.host,
        path: url.pathname + url.search,
        headers: { "content-type": "application/json", "content-length": String(Buffer.byteLength(data)) },
        body: data,
      };
      const slowMs = strikes("webhookSlow", site) ? slow() : 0;
      process.after(quick() + (draw.chance(0.5) ? slowMs : 0), () => {
        const arrivedAt = schedule.now();
        options.onArrival(url.pathname, data, process.name);
        const handler = routes.get(url.pathname);
        const end = serverEnd(sent, {
          head: (code) => void (status = code),
          chunk: (part) => void (text += part.toString()),
          end: () => {
            const stoodStillMs = process.stoodStillMs(arrivedAt);
            const tookMs = schedule.now() - arrivedAt - stoodStillMs;
            const lateMs = tookMs - timeoutMs * ANSWER_SHARE;
            options.onReview({ path: url.pathname, sent: data, status, answer: text, lateMs });
            if (strikes("killAfter", site)) return process.kill();
            schedule.after(quick() + slowMs, () => {
              cancel();
              if (status === 200) answer(text);
              else fail(`an error on the server (${JSON.stringify(text)}) has prevented the request from succeeding`);
            });
          },
          destroy: died,
        });
        // What has died notices nothing.
        schedule.after(timeoutMs, () => process.isAlive() && end.close());
        if (!handler) return fail(`404: no webhook ${url.pathname}`);
        void handler(end.message, end.response);
      });
    });

  /** A call without faults, as a human or another controller makes it. */
  function ask(actor: string, method: string, path: string, body?: unknown) {
    const headers = {
      authorization: `Bearer ${tokenOf(actor)}`,
      accept: "application/json",
      "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json",
    };
    const sent = { method, host: "", path, headers, body: body === undefined ? "" : JSON.stringify(body) };
    return new Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }>((resolve) => {
      let text = "";
      let status = 0;
      const caller = { actor, call: `${method} ${shorten(path)}` };
      schedule.after(quick(), () =>
        apply(caller, sent, {
          head: (code) => {
            status = code;
            options.onCall(caller, sent, code);
          },
          chunk: (part) => void (text += part.toString()),
          end: () => void schedule.after(quick(), () => resolve({ status, body: JSON.parse(text || "{}") })),
          destroy: () => void schedule.after(quick(), () => resolve({ status: 0, body: {} })),
        }),
      );
    });
  }

  const connectionOf = (process: Process): Connection => ({
    server: new URL("https://apiserver"),
    authorize: () => Promise.resolve({ headers: { authorization: `Bearer ${tokenOf(kindOf(process.name))}` } }),
    open: openOver(sendToApi(process)),
    close: () => {},
  });
  const openHosts = (process: Process): OpenRequest => openOver(sendToHost(process));

  /** Disturbs calls until the function that this returns is called. */
  function disturb(how: Disturb): () => void {
    disturbs.add(how);
    return () => void disturbs.delete(how);
  }

  return { serveFrom: (served: Api) => void (api = served), connectionOf, openHosts, post, ask, disturb };
}

/** Undefined for what the API server does not serve, or no more. */
function findTarget({ registry }: Api, method: string, path: string): ReturnType<typeof parseTarget> {
  try {
    return parseTarget(registry, method, new URL(path, "https://apiserver"));
  } catch {
    return undefined;
  }
}

/** An API server may give fewer objects at once than were asked for. */
const paged = (sent: Sent, pageSize: number | undefined): Sent =>
  pageSize === undefined ? sent : { ...sent, path: sent.path.replace(/\blimit=\d+/, `limit=${pageSize}`) };

/** Answers of one exchange arrive in their order. */
export function inOrder(process: Process, quick: () => number): (ms: number, run: () => void) => void {
  let last = 0;
  return (ms, run) => {
    const at = Math.max(last, process.clock.monotonic() + ms + (ms > 0 ? 0 : quick() % 2));
    last = at;
    process.after(at - process.clock.monotonic(), run);
  };
}

/** `webhooks-2` -> `webhooks`. */
const kindOf = (name: string): string => name.replace(/-\d+$/, "");

/** Verb, kind and subresource: where a call is made, apart from its object. */
function siteOf({ method, path }: Sent): string {
  const [, rest = ""] = /\/(?:namespaces\/[^/]+\/)?([a-z]+(?:\/[^/?]+(?:\/[a-z]+)?)?)(?:\?|$)/.exec(path) ?? [];
  const [plural = path, name, subresource] = rest.split("/");
  const verb = path.includes("watch=") ? "WATCH" : method === "GET" && name === undefined ? "LIST" : method;
  return `${verb} ${plural}${subresource === undefined ? "" : `/${subresource}`}`;
}

const names = new Map<string, { readonly call: string; readonly site: string }>();
const MAX_NAMES = 10_000;

/** A call in words, and its site; most calls are made again and again. */
function namesOf(sent: Sent): { readonly call: string; readonly site: string } {
  const [path = "", query = ""] = sent.path.split("?", 2);
  const key = `${sent.method} ${path}${query.includes("watch=") ? "?watch=" : ""}`;
  const known = names.get(key) ?? { call: `${sent.method} ${shorten(sent.path)}`, site: siteOf(sent) };
  if (names.size === MAX_NAMES) names.clear();
  names.set(key, known);
  return known;
}

const shorten = (path: string): string =>
  path
    .replace(/\?.*/, (query) => (query.includes("watch=") ? "?watch" : ""))
    .replace(/^\/apis?\/(?:[^/]+\/)?v\d\w*\/(?:namespaces\/[^/]+\/)?/, "");
