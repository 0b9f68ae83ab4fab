/** Pages outside the resources: health, version, discovery, OpenAPI, the keys of ServiceAccount tokens. */
import type { Api } from "./api.ts";
import { jsonAnswer } from "./answer.ts";
import { discoveryPage } from "./discovery.ts";
import { openApiPage } from "./openapi.ts";
import type { Answer } from "./request.ts";

const VERSION = { major: "1", minor: "36", gitVersion: "v1.36.2" };

const healthy = (): Answer => ({ code: 200, body: "ok", contentType: "text/plain; charset=utf-8" });

const PAGES: Readonly<Record<string, (api: Api) => Answer>> = {
  "/healthz": healthy,
  "/livez": healthy,
  "/readyz": healthy,
  "/version": () => jsonAnswer(200, VERSION),
  "/openid/v1/jwks": (api) => ({ ...jsonAnswer(200, api.tokens.keys()), contentType: "application/jwk-set+json" }),
};

/** Undefined for paths of resources; nobody has to say who they are to read a page. */
export function pageOf(api: Api, url: URL): Answer | undefined {
  return PAGES[url.pathname]?.(api) ?? discoveryPage(api.registry, url) ?? openApiPage(api.registry, url);
}
