/** The little of OpenAPI that makes kubectl leave validation to the server: for each kind a PATCH that takes `fieldValidation`. */
import { jsonAnswer } from "./answer.ts";
import type { Fields } from "./objects.ts";
import { rootOf } from "./registry.ts";
import type { Registry, Served } from "./registry.ts";
import type { Answer } from "./request.ts";

function pathItem({ group, version, kind }: Served): Fields {
  const marker = { "x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": { group, version, kind } };
  return { patch: { parameters: [{ name: "fieldValidation", in: "query" }], responses: {}, ...marker } };
}

/** Undefined for paths that are not about OpenAPI v3. */
export function openApiPage(registry: Registry, { pathname }: URL): Answer | undefined {
  if (!pathname.startsWith("/openapi/v3")) return undefined;
  const byRoot = Map.groupBy(registry.all(), rootOf);
  if (pathname === "/openapi/v3") {
    const paths = [...byRoot.keys()].map((root) => [root.slice(1), { serverRelativeURL: `/openapi/v3${root}` }]);
    return jsonAnswer(200, { paths: Object.fromEntries(paths) });
  }
  const kinds = byRoot.get(pathname.slice("/openapi/v3".length));
  const paths = kinds?.map((kind) => [`${rootOf(kind)}/${kind.plural}/{name}`, pathItem(kind)]);
  return paths && jsonAnswer(200, { openapi: "3.0.0", info: { title: "Kubernetes", version: "v1.36" }, paths: Object.fromEntries(paths) });
}
