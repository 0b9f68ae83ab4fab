/**
 * Instant queries of Prometheus.
 *
 *   URL and host allowed? -> POST <url>/api/v1/query --405 or 501--> GET --> the answer is read, and the credentials are removed from its texts
 */
import { X509Certificate } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { LookupFunction } from "node:net";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import type { Clock } from "../../clock.ts";
import { startDeadline } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import { type OpenRequest, readText, requestOnce } from "../../http.ts";
import { queryError, readAnswer, type HttpAnswer, type QueryAnswer } from "../answer.ts";
import { credentialsOf, type QueryCredentials } from "../credentials.ts";
import { describeQueryTarget, isHostAllowed, readQueryTarget } from "../target.ts";

export interface PrometheusQuery {
  /** The base of the API, without `/api/v1/query`; without `://` it means `http://`. */
  readonly url: string;
  /** PromQL. */
  readonly expr: string;
  readonly insecureSkipVerify?: boolean | undefined;
  /** PEM, or base64 of it: the CAs to trust in place of the system's. */
  readonly caBundle?: string | undefined;
  /** Instead of the user and password of the URL. */
  readonly credentials?: QueryCredentials | undefined;
}

export interface PrometheusClient {
  /** Never rejects. A query that `signal` ends is `Unreachable`. */
  query(query: PrometheusQuery, signal?: AbortSignal): Promise<QueryAnswer>;
}

export interface PrometheusOptions {
  /** Milliseconds until the whole answer must have been read. */
  readonly timeoutMs: number;
  /** Host names, or names with a port, in lower case, that may be asked; all if it is empty. */
  readonly allowedHosts: readonly string[];
  /** Resolves names in place of DNS. */
  readonly lookup?: LookupFunction;
  /** Opens requests in place of the network. */
  readonly open?: OpenRequest | undefined;
  readonly clock?: Clock;
}

const MAX_ANSWER_LENGTH = 1024 * 1024;
const POST_IS_NOT_SERVED: ReadonlySet<number> = new Set([405, 501]);

/** A client without kept-alive connections: a check asks once a minute or so. */
export function createPrometheusClient({
  timeoutMs,
  allowedHosts,
  lookup,
  open,
  clock,
}: PrometheusOptions): PrometheusClient {
  let ofSystem: SecureContext | undefined;
  const trust = (query: PrometheusQuery): SecureContext =>
    query.caBundle === undefined
      ? (ofSystem ??= trustSystem())
      : createSecureContext({ ca: readBundle(query.caBundle) });

  return {
    async query(query, signal) {
      const { url, problem } = readQueryTarget(query.url);
      if (!url) return queryError("TargetInvalid", `the URL ${problem}`);
      if (!isHostAllowed(url, allowedHosts))
        return queryError("TargetInvalid", `the host ${url.host} is not in PROMETHEUS_ALLOWED_HOSTS`);
      const { authorization, secrets } = query.credentials ?? credentialsOf(url);
      // A server may repeat what it was sent.
      const hide = (text: string): string => secrets.reduce((shown, secret) => shown.replaceAll(secret, "***"), text);
      using deadline = startDeadline(timeoutMs, signal, clock);
      const sending: Sending = {
        url,
        expr: query.expr,
        authorization,
        signal: deadline.signal,
        open,
        ...(lookup && { lookup }),
      };
      try {
        const tls =
          url.protocol === "https:"
            ? { secureContext: trust(query), rejectUnauthorized: query.insecureSkipVerify !== true }
            : {};
        return readAnswer(await ask({ ...sending, tls }), hide);
      } catch (error) {
        const code =
          error instanceof BadBundle ? "TargetInvalid" : error instanceof BadAnswer ? "BadAnswer" : "Unreachable";
        return queryError(code, hide(`${describeQueryTarget(url)}: ${describeFailure(error)}`));
      }
    },
  };
}

interface Sending {
  readonly url: URL;
  readonly expr: string;
  readonly authorization: string | undefined;
  readonly signal: AbortSignal;
  readonly lookup?: LookupFunction;
  readonly open?: OpenRequest | undefined;
  readonly tls?: { readonly secureContext?: SecureContext; readonly rejectUnauthorized?: boolean };
}

class BadBundle extends Error {}
class BadAnswer extends Error {}

async function ask(sending: Sending): Promise<HttpAnswer> {
  const answer = await exchange("POST", sending);
  return POST_IS_NOT_SERVED.has(answer.status) ? await exchange("GET", sending) : answer;
}

async function exchange(method: "POST" | "GET", sending: Sending): Promise<HttpAnswer> {
  const answer = await sendOne(method, sending);
  const body = await readText(answer, sending.signal, MAX_ANSWER_LENGTH).catch((error: unknown) => {
    answer.destroy();
    // The server has answered, but more than is read; any other failure ends the connection.
    throw answer.errored || sending.signal.aborted ? error : new BadAnswer(messageOf(error));
  });
  return { status: answer.statusCode ?? 0, body };
}

function sendOne(
  method: "POST" | "GET",
  { url, expr, authorization, signal, lookup, open, tls }: Sending,
): Promise<IncomingMessage> {
  const form = new URLSearchParams({ query: expr }).toString();
  const target = new URL(url);
  // Node.js would send them as Basic authentication of its own.
  target.username = "";
  target.password = "";
  if (method === "GET") target.searchParams.set("query", expr);
  return requestOnce(target, {
    method,
    headers: {
      accept: "application/json",
      "accept-encoding": "identity",
      "user-agent": "zonewise",
      ...(authorization !== undefined && { authorization }),
      ...(method === "POST" && {
        "content-type": "application/x-www-form-urlencoded",
        "content-length": Buffer.byteLength(form),
      }),
    },
    body: method === "POST" ? form : undefined,
    signal,
    open,
    ...(lookup && { lookup }),
    ...tls,
  });
}

/**
 * What Node.js trusts, and the system's roots as well: Node.js has roots of its own, without those that an installation
 * has added.
 */
function trustSystem(): SecureContext {
  return createSecureContext({ ca: [...new Set([...getCACertificates("default"), ...getCACertificates("system")])] });
}

/** Throws `BadBundle` if it has no readable certificate. */
function readBundle(text: string): string {
  const pem = text.includes("-----BEGIN") ? text : Buffer.from(text, "base64").toString("utf8");
  try {
    void new X509Certificate(pem);
    return pem;
  } catch (cause) {
    throw new BadBundle("the CA bundle has no readable certificate in PEM", { cause });
  }
}

/** Node.js gives no message if several addresses of a host have failed, only a code. */
function describeFailure(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "no answer";
  return messageOf(error) || code;
}
