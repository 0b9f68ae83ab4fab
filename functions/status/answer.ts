/** Answers for the status page: GET alone, hosts that are known, and headers that let a browser do nothing but show it. */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "../../infra/log.ts";
import type { Focus } from "./gather.ts";
import { renderPage } from "./page.ts";
import { keyOf, type Records } from "./records.ts";
import { SCRIPT } from "./script.ts";
import { STYLE } from "./style.ts";

export interface AnswerOptions {
  readonly read: (focus: Focus) => Promise<Records>;
  /** Hosts by which the page may be asked for besides this machine's own, as browsers name them. */
  readonly hosts: readonly string[];
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

/** What `kubectl port-forward` and proxies in the same pod are asked for. */
const OWN_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/;

/** Never rejects. */
export function createAnswer({ read, hosts, log }: AnswerOptions): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const isKnown = (host: string): boolean => OWN_HOST.test(host) || hosts.includes(host) || hosts.includes(host.replace(/:\d+$/, ""));

  function refuse(response: ServerResponse, status: number, message: string): void {
    const headers = { ...HEADERS, "content-type": "text/plain; charset=utf-8", ...(status === 405 && { allow: "GET, HEAD" }) };
    response.writeHead(status, headers).end(`${message}\n`);
  }

  async function answer({ method = "", url = "", headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    // A page of another origin whose name leads to this machine would otherwise read ours in its visitor's browser (DNS rebinding).
    if (!isKnown((headers.host ?? "").toLowerCase()))
      return refuse(response, 421, "unknown host: STATUS_PAGE_HOSTS names those that are served");
    if (method !== "GET" && method !== "HEAD") return refuse(response, 405, "GET the page");
    const [path, query] = url.split("?");
    if (path !== "/") return refuse(response, 404, "the page is at /");
    const chosen = new URLSearchParams(query);
    const name = chosen.get("group");
    const focus = name === null ? undefined : keyOf({ namespace: chosen.get("namespace") ?? "", name });
    const records = await read(focus);
    const isFound = focus === undefined || records.groups?.some((group) => keyOf(group) === focus) === true;
    response.writeHead(isFound ? 200 : 404, HEADERS).end(renderPage({ records, focus }));
  }

  return async (request, response) => {
    try {
      await answer(request, response);
    } catch (error) {
      log.error("the status page could not be rendered", { error });
      if (!response.headersSent) refuse(response, 500, "internal error");
    }
  };
}
