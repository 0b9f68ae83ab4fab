/** What is served: the plain lists of groups, versions and resources. */
import { jsonAnswer } from "./answer.ts";
import { apiVersionOf } from "./registry.ts";
import type { Registry, Served } from "./registry.ts";
import type { Answer } from "./request.ts";

const VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"];
const VERBS_BELOW = ["get", "patch", "update"];

/** Subresources that are not of the object's own kind, and their verbs. */
const BELOW: Readonly<Record<string, { group: string; version: string; kind: string; verbs: string[] }>> = {
  scale: { group: "autoscaling", version: "v1", kind: "Scale", verbs: VERBS_BELOW },
  eviction: { group: "policy", version: "v1", kind: "Eviction", verbs: ["create"] },
  token: { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest", verbs: ["create"] },
};

/** The kind and its subresources, as an APIResourceList names them. */
function resourcesOf({ plural, singular, kind, namespaced, shortNames, categories, subresources }: Served): object[] {
  return [
    { name: plural, singularName: singular, namespaced, kind, verbs: VERBS, shortNames, categories },
    ...subresources.map((name) => ({
      name: `${plural}/${name}`,
      singularName: "",
      namespaced,
      ...(BELOW[name] ?? { kind, verbs: VERBS_BELOW }),
    })),
  ];
}

function groupOf(name: string, kinds: readonly Served[]): object {
  const versions = [...new Set(kinds.map(({ version }) => version))].map((version) => ({
    groupVersion: apiVersionOf({ group: name, version }),
    version,
  }));
  return { name, versions, preferredVersion: versions[0] };
}

/** Undefined for paths that are not about discovery. */
export function discoveryPage(registry: Registry, { pathname }: URL): Answer | undefined {
  if (pathname === "/api") return jsonAnswer(200, { kind: "APIVersions", versions: ["v1"] });
  if (pathname === "/apis") {
    const groups = [...Map.groupBy(registry.all(), ({ group }) => group)].filter(([name]) => name !== "");
    return jsonAnswer(200, { kind: "APIGroupList", apiVersion: "v1", groups: groups.map(([name, kinds]) => groupOf(name, kinds)) });
  }
  const [, groupVersion = ""] = /^\/(?:api|apis(?=\/.*\/))\/(.*)$/.exec(pathname) ?? [];
  const kinds = registry.all().filter((kind) => apiVersionOf(kind) === groupVersion);
  if (kinds.length === 0) return undefined;
  return jsonAnswer(200, { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources: kinds.flatMap(resourcesOf) });
}
