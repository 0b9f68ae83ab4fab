/**
 * Instant queries of Prometheus.
 *
 *   URL and host allowed? -> POST <url>/api/v1/query --405 or 501--> GET --> the answer is read, and the credentials are removed from its texts
 */
import { X509Certificate } from "node:crypto";
import type { LookupFunction } from "node:net";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import type { Clock } from "../../clock.ts";
import { credentialsOf, type QueryCredentials, redactUrl, withoutCredentials } from "../../credentials.ts";
import { hasCode, messageOf, RolloutError } from "../../errors.ts";
import { exchange, type ExchangeOptions, type OpenRequest, withinDeadline } from "../../http.ts";
import { queryError, readAnswer, type PrometheusAnswer, type QueryAnswer } from "../answer.ts";
import { isHostAllowed, readQueryTarget } from "../target.ts";

export interface PrometheusQuery {
  /** The base of the API, without `/api/v1/query`; without `://` it means `http://`. */
  readonly url: string;
  readonly expr: string;
  /** The time of evaluation, milliseconds since the epoch; now unless given. */
  readonly time?: number | undefined;
  readonly insecureSkipVerify?: boolean | undefined;
  /** PEM, or base64 of it: the CAs to trust in place of the system's. */
  readonly caBundle?: string | undefined;
  /** Used instead of the user and password of the URL. */
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
      // A server may repeat the credentials in its answer.
      const hide = (text: string): string => secrets.reduce((shown, secret) => shown.replaceAll(secret, "***"), text);
      const run = async (signal: AbortSignal): Promise<PrometheusAnswer> => {
        const tls =
          url.protocol === "https:"
            ? { secureContext: trust(query), rejectUnauthorized: query.insecureSkipVerify !== true }
            : {};
        return await ask({
          url,
          parameters: {
            query: query.expr,
            ...(query.time !== undefined && { time: String(query.time / 1000) }),
          },
          authorization,
          more: { signal, open, ...(lookup && { lookup }), ...tls },
        });
      };
      try {
        return readAnswer(await withinDeadline(redactUrl(url), { timeoutMs, clock, signal }, run), hide);
      } catch (error) {
        return queryError(codeOf(error), hide(messageOf(error)));
      }
    },
  };
}

function codeOf(error: unknown): "TargetInvalid" | "BadAnswer" | "Unreachable" {
  if (hasCode(error, "BadConfiguration")) return "TargetInvalid";
  return hasCode(error, "ServerError") ? "BadAnswer" : "Unreachable";
}

interface Sending {
  readonly url: URL;
  readonly parameters: Readonly<Record<string, string>>;
  readonly authorization: string | undefined;
  readonly more: Omit<ExchangeOptions, "method" | "headers" | "body">;
}

async function ask(sending: Sending): Promise<PrometheusAnswer> {
  const answer = await send("POST", sending);
  return POST_IS_NOT_SERVED.has(answer.status) ? await send("GET", sending) : answer;
}

async function send(
  method: "POST" | "GET",
  { url, parameters, authorization, more }: Sending,
): Promise<PrometheusAnswer> {
  const target = withoutCredentials(url);
  if (method === "GET") for (const [name, value] of Object.entries(parameters)) target.searchParams.set(name, value);
  const { status, text: body } = await exchange(target, {
    ...more,
    method,
    headers: {
      accept: "application/json",
      "accept-encoding": "identity",
      "user-agent": "zonewise",
      ...(authorization !== undefined && { authorization }),
      ...(method === "POST" && { "content-type": "application/x-www-form-urlencoded" }),
    },
    body: method === "POST" ? new URLSearchParams(parameters).toString() : undefined,
  });
  return { status, body };
}

/**
 * Trusts the roots of Node.js and of the system: Node.js has its own roots, without those that an installation has
 * added.
 */
function trustSystem(): SecureContext {
  return createSecureContext({ ca: [...new Set([...getCACertificates("default"), ...getCACertificates("system")])] });
}

/** Throws `BadConfiguration` if it has no readable certificate. */
function readBundle(text: string): string {
  const pem = text.includes("-----BEGIN") ? text : Buffer.from(text, "base64").toString("utf8");
  try {
    void new X509Certificate(pem);
    return pem;
  } catch (cause) {
    throw new RolloutError("BadConfiguration", "the CA bundle has no readable certificate in PEM", { cause });
  }
}
