/** Pages outside the resources: health, version, discovery, OpenAPI, the keys of ServiceAccount tokens. */
import type { Api } from "./api.ts";
import { jsonAnswer } from "./answer.ts";
import { discoveryPage } from "./discovery.ts";
import { openApiPage } from "./openapi.ts";
import type { Answer } from "./request.ts";
import { ISSUER } from "./tokens.ts";

export interface Page {
  readonly isPrivate: boolean;
  answer(): Answer;
}

const VERSION = { major: "1", minor: "36", gitVersion: "v1.36.2" };

const healthy = (): Answer => ({ code: 200, body: "ok", contentType: "text/plain; charset=utf-8" });

const PUBLIC: Readonly<Record<string, (api: Api) => Answer>> = {
  "/healthz": healthy,
  "/livez": healthy,
  "/readyz": healthy,
  "/version": () => jsonAnswer(200, VERSION),
  "/.well-known/openid-configuration": () =>
    jsonAnswer(200, {
      issuer: ISSUER,
      jwks_uri: `${ISSUER}/openid/v1/jwks`,
      response_types_supported: ["id_token"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: ["ES256"],
    }),
  "/openid/v1/jwks": (api) => ({ ...jsonAnswer(200, api.tokens.keys()), contentType: "application/jwk-set+json" }),
};

export function pageOf(api: Api, url: URL): Page | undefined {
  const known = PUBLIC[url.pathname];
  if (known) return { isPrivate: false, answer: () => known(api) };
  const answer = discoveryPage(api.registry, url) ?? openApiPage(api.registry, url);
  return answer && { isPrivate: true, answer: () => answer };
}
