/** What is served: the plain lists of groups, versions and resources. */
import { jsonAnswer } from "./answer.ts";
import { apiVersionOf, rootOf } from "./registry.ts";
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

function groupOf(name: string, kinds: readonly Served[]): { name: string; [field: string]: unknown } {
  const versions = [...new Set(kinds.map(({ version }) => version))].map((version) => ({
    groupVersion: apiVersionOf({ group: name, version }),
    version,
  }));
  return { name, versions, preferredVersion: versions[0] };
}

/** Undefined for paths that are not about discovery. */
export function discoveryPage(registry: Registry, { pathname }: URL): Answer | undefined {
  if (pathname === "/api") return jsonAnswer(200, { kind: "APIVersions", versions: ["v1"] });
  const groups = [...Map.groupBy(registry.all(), ({ group }) => group)].filter(([name]) => name !== "");
  const described = groups.map(([name, kinds]) => groupOf(name, kinds));
  if (pathname === "/apis") return jsonAnswer(200, { kind: "APIGroupList", apiVersion: "v1", groups: described });
  const group = described.find(({ name }) => pathname === `/apis/${name}`);
  if (group) return jsonAnswer(200, { kind: "APIGroup", apiVersion: "v1", ...group });
  const kinds = registry.all().filter((kind) => pathname === rootOf(kind));
  if (kinds.length === 0) return undefined;
  return jsonAnswer(200, {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: pathname.replace(/^\/apis?\//, ""),
    resources: kinds.flatMap(resourcesOf),
  });
}
