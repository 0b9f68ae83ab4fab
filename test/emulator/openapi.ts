/** Just enough OpenAPI that kubectl trusts the server with validation, and can explain custom resources. */
import { jsonAnswer } from "./answer.ts";
import type { Fields } from "./objects.ts";
import { apiVersionOf } from "./registry.ts";
import type { Registry, Served } from "./registry.ts";
import type { Answer } from "./request.ts";

/** OpenAPI v2 is only asked for as protobuf: a document with `swagger: "2.0"` (field 1) and nothing else. */
const EMPTY_V2 = Buffer.from([0x0a, 0x03, 0x32, 0x2e, 0x30]);
const V2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

function pathOf(kind: Served): string {
  const root = kind.group ? `/apis/${apiVersionOf(kind)}` : `/api/${kind.version}`;
  return `${root}/${kind.namespaced ? "namespaces/{namespace}/" : ""}${kind.plural}/{name}`;
}

function schemaName(kind: Served): string {
  return `${(kind.group || "core").split(".").toReversed().join(".")}.${kind.version}.${kind.kind}`;
}

function schemaOf(kind: Served, marker: Fields): Fields {
  const header = { apiVersion: { type: "string" }, kind: { type: "string" }, metadata: { type: "object" } };
  const open = { type: "object", properties: { ...header, spec: { type: "object" }, status: { type: "object" } } };
  return { description: kind.kind, ...(kind.custom?.openApi ?? open), "x-kubernetes-group-version-kind": [marker] };
}

/** A PATCH that takes `fieldValidation` is what makes kubectl leave the validation to the server. */
function document(kinds: readonly Served[]): Fields {
  const parameters = ["dryRun", "fieldManager", "fieldValidation"].map((name) => ({ name, in: "query", schema: { type: "string" } }));
  const paths: Fields = {};
  const schemas: Fields = {};
  for (const kind of kinds) {
    const marker = { group: kind.group, version: kind.version, kind: kind.kind };
    const operation = (action: string): Fields => ({
      parameters,
      "x-kubernetes-action": action,
      "x-kubernetes-group-version-kind": marker,
      responses: {},
    });
    paths[pathOf(kind)] = { get: operation("get"), put: operation("put"), patch: operation("patch") };
    schemas[schemaName(kind)] = schemaOf(kind, marker);
  }
  return { openapi: "3.0.0", info: { title: "Kubernetes", version: "v1.36.2" }, paths, components: { schemas } };
}

/** Undefined for paths that are not about OpenAPI. */
export function openApiPage(registry: Registry, url: URL, accept: string): Answer | undefined {
  if (url.pathname === "/openapi/v2") {
    if (accept.includes("protobuf")) return { code: 200, body: EMPTY_V2, contentType: V2_TYPE };
    return jsonAnswer(200, { swagger: "2.0", info: { title: "Kubernetes", version: "v1.36.2" }, paths: {}, definitions: {} });
  }
  const rootOf = (kind: Served): string => (kind.group ? `apis/${apiVersionOf(kind)}` : `api/${kind.version}`);
  if (url.pathname === "/openapi/v3") {
    const roots = new Set(registry.all().map(rootOf));
    return jsonAnswer(200, { paths: Object.fromEntries([...roots].map((root) => [root, { serverRelativeURL: `/openapi/v3/${root}` }])) });
  }
  if (!url.pathname.startsWith("/openapi/v3/")) return undefined;
  const kinds = registry.all().filter((kind) => rootOf(kind) === url.pathname.slice("/openapi/v3/".length));
  return kinds.length > 0 ? jsonAnswer(200, document(kinds)) : undefined;
}
