/** Endpoints without stored resources: version, discovery, OpenAPI, the keys of tokens, and reviews. */
import { dig, fieldsOf } from "./objects.ts";
import { apiVersionOf, type Registry, rootOf, type Served } from "./registry.ts";
import type { Api } from "./api.ts";
import type { User } from "./tokens.ts";

const VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"];

/** Discovery fields of the subresources whose kind differs from their parent's. */
const SUBRESOURCES: Readonly<Record<string, object>> = {
  scale: { group: "autoscaling", version: "v1", kind: "Scale" },
  eviction: { group: "policy", version: "v1", kind: "Eviction", verbs: ["create"] },
};

/** The kind and its subresources as entries of an APIResourceList. */
function resourcesOf({ plural, singular, kind, namespaced, shortNames, categories, subresources }: Served): object[] {
  const common = { singularName: "", namespaced, kind, verbs: ["get", "patch", "update"] };
  return [
    { name: plural, singularName: singular, namespaced, kind, verbs: VERBS, shortNames, categories },
    ...subresources.map((name) => ({ ...common, name: `${plural}/${name}`, ...SUBRESOURCES[name] })),
  ];
}

function groupsOf(registry: Registry) {
  const groups = [...Map.groupBy(registry.all(), ({ group }) => group)].filter(([name]) => name !== "");
  return groups.map(([name, kinds]) => {
    const versions = [...new Set(kinds.map(({ version }) => version))].map((version) => ({
      groupVersion: `${name}/${version}`,
      version,
    }));
    return { name, versions, preferredVersion: versions[0] };
  });
}

/** kubectl leaves validation to the server if a PATCH of the kind accepts `fieldValidation`. */
function pathOf(served: Served): [path: string, item: object] {
  const { group, version, kind, plural } = served;
  const marker = { "x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": { group, version, kind } };
  return [
    `${rootOf(served)}/${plural}/{name}`,
    { patch: { parameters: [{ name: "fieldValidation", in: "query" }], ...marker } },
  ];
}

/** One document describes all groups. */
const SCHEMAS = { serverRelativeURL: "/openapi/v3/all" };

interface Asked {
  readonly body: unknown;
  readonly user: User;
}

const ENDPOINTS: Readonly<Record<string, (api: Api, asked: Asked) => object | Promise<object>>> = {
  "/version": () => ({ major: "1", minor: "36", gitVersion: "v1.36.2" }),
  "/api": () => ({ kind: "APIVersions", versions: ["v1"] }),
  "/apis": ({ registry }) => ({ kind: "APIGroupList", apiVersion: "v1", groups: groupsOf(registry) }),
  "/openapi/v3": ({ registry }) => ({
    paths: Object.fromEntries(registry.all().map((kind) => [rootOf(kind).slice(1), SCHEMAS])),
  }),
  [SCHEMAS.serverRelativeURL]: ({ registry }) => ({
    openapi: "3.0.0",
    info: {},
    paths: Object.fromEntries(registry.all().map(pathOf)),
  }),
  // Requests are not judged by RBAC: everybody may do everything.
  "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": (_api, { body }) => ({
    ...fieldsOf(body),
    status: { allowed: true },
  }),
  "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": (_api, { body }) => ({
    ...fieldsOf(body),
    status: {
      resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
      nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
      incomplete: false,
    },
  }),
  "/apis/authentication.k8s.io/v1/selfsubjectreviews": (_api, { body, user }) => ({
    ...fieldsOf(body),
    status: { userInfo: user },
  }),
  "/openid/v1/jwks": ({ tokens }) => tokens.keys(),
  "/apis/authentication.k8s.io/v1/tokenreviews": async ({ tokens }, { body }) => ({
    ...fieldsOf(body),
    status: await tokens.review(dig(body, "spec")),
  }),
};

/** Returns the response body; undefined for paths of resources. */
export function answerNonResource(api: Api, pathname: string, asked: Asked): object | Promise<object> | undefined {
  const endpoint = ENDPOINTS[pathname];
  if (endpoint) return endpoint(api, asked);
  const kinds = api.registry.all().filter((kind) => rootOf(kind) === pathname);
  const groupVersion = kinds[0] && apiVersionOf(kinds[0]);
  if (groupVersion)
    return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources: kinds.flatMap(resourcesOf) };
  const group = groupsOf(api.registry).find(({ name }) => pathname === `/apis/${name}`);
  return group && { kind: "APIGroup", apiVersion: "v1", ...group };
}
