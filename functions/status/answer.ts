/**
 * Answers requests for the status page: only GET and HEAD, only known hosts, and headers that let a browser only show
 * the page.
 */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "../../infra/log.ts";
import type { Focus } from "./gather.ts";
import { renderPage } from "./view/page.ts";
import { isUnread, keyOf, listPart, type PageRecords } from "./view/records.ts";
import { SCRIPT } from "./view/script.ts";
import { STYLE } from "./view/style.ts";

interface AnswerOptions {
  readonly read: (focus: Focus) => Promise<PageRecords>;
  /** Hosts, as browsers name them, by which the page may be requested besides this machine's own. */
  readonly hosts: readonly string[];
  readonly clusterName?: string;
  readonly log: Log;
}

const hashOf = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": [
    "default-src 'none'",
    `script-src ${hashOf(SCRIPT)}`,
    `style-src ${hashOf(STYLE)}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

/** The hosts of requests through `kubectl port-forward` and through proxies in the same pod. */
const OWN_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/;

interface Refusal {
  readonly status: number;
  readonly message: string;
}

/** Never rejects. */
export function createAnswer({
  read,
  hosts,
  clusterName = "",
  log,
}: AnswerOptions): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    try {
      const refusal = whyRefuse(request, hosts);
      if (refusal) sendRefusal(response, refusal);
      else await show(response, readFocus(request.url));
    } catch (error) {
      log.error("the status page could not be rendered", { error });
      if (!response.headersSent) sendRefusal(response, { status: 500, message: "internal error" });
    }
  };

  async function show(response: ServerResponse, focus: Focus): Promise<void> {
    const records = await read(focus);
    const isFound =
      focus === undefined ||
      isUnread(records, focus) ||
      listPart(records.groups).some((group) => keyOf(group) === focus);
    response.writeHead(isFound ? 200 : 404, HEADERS).end(renderPage({ records, focus, clusterName }));
  }
}

function whyRefuse({ method = "", url = "", headers }: IncomingMessage, hosts: readonly string[]): Refusal | undefined {
  const host = (headers.host ?? "").toLowerCase();
  const isKnown = OWN_HOST.test(host) || hosts.includes(host) || hosts.includes(host.replace(/:\d+$/, ""));
  // Otherwise a page of another origin whose name resolves to this machine could read ours in its visitor's browser
  // (DNS rebinding).
  if (!isKnown) return { status: 421, message: "unknown host: STATUS_PAGE_HOSTS names those that are served" };
  if (method !== "GET" && method !== "HEAD") return { status: 405, message: "GET the page" };
  return /^\/(?:\?|$)/.test(url) ? undefined : { status: 404, message: "the page is at /" };
}

function sendRefusal(response: ServerResponse, { status, message }: Refusal): void {
  const headers = {
    ...HEADERS,
    "content-type": "text/plain; charset=utf-8",
    ...(status === 405 && { allow: "GET, HEAD" }),
  };
  response.writeHead(status, headers).end(`${message}\n`);
}

function readFocus(url = ""): Focus {
  const chosen = new URLSearchParams(url.split("?")[1]);
  const name = chosen.get("group");
  return name === null ? undefined : keyOf({ namespace: chosen.get("namespace") ?? "", name });
}
