/** What is served: aggregated discovery (apidiscovery.k8s.io/v2) and the plain lists. */
import { jsonAnswer } from "./answer.ts";
import { apiVersionOf } from "./registry.ts";
import type { Registry, Served } from "./registry.ts";
import type { Answer } from "./request.ts";

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** Kinds of subresources that are not the object's own, and their verbs. */
const SUBRESOURCES: Readonly<Record<string, { group: string; version: string; kind: string; verbs: string[] }>> = {
  scale: { group: "autoscaling", version: "v1", kind: "Scale", verbs: ["get", "patch", "update"] },
  eviction: { group: "policy", version: "v1", kind: "Eviction", verbs: ["create"] },
  binding: { group: "", version: "v1", kind: "Binding", verbs: ["create"] },
  token: { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest", verbs: ["create"] },
};

interface Below {
  readonly name: string;
  readonly responseKind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly verbs: readonly string[];
}

function subresourcesOf(kind: Served): Below[] {
  return kind.subresources.map((name) => {
    const { verbs, ...responseKind } = SUBRESOURCES[name] ?? {
      group: kind.group,
      version: kind.version,
      kind: kind.kind,
      verbs: ["get", "patch", "update"],
    };
    return { name, responseKind, verbs };
  });
}

function versionsByGroup(registry: Registry): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const { group, version } of registry.all()) groups.set(group, [...new Set([...(groups.get(group) ?? []), version])]);
  return groups;
}

function aggregated(registry: Registry, groups: Iterable<[string, string[]]>): Answer {
  const items = [...groups].map(([group, versions]) => ({
    metadata: group ? { name: group } : {},
    versions: versions.map((version) => ({
      version,
      resources: registry
        .all()
        .filter((kind) => kind.group === group && kind.version === version)
        .map((kind) => ({
          resource: kind.plural,
          responseKind: { group: kind.group, version: kind.version, kind: kind.kind },
          scope: kind.namespaced ? "Namespaced" : "Cluster",
          singularResource: kind.singular,
          verbs: VERBS,
          shortNames: kind.shortNames,
          categories: kind.categories,
          subresources: subresourcesOf(kind).map(({ name, ...rest }) => ({ subresource: name, ...rest })),
        })),
      freshness: "Current",
    })),
  }));
  const answer = jsonAnswer(200, { kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {}, items });
  return { ...answer, contentType: AGGREGATED };
}

function groupOf(name: string, versions: readonly string[]): object {
  const all = versions.map((version) => ({ groupVersion: apiVersionOf({ group: name, version }), version }));
  return { name, versions: all, preferredVersion: all[0] };
}

function resourceList(registry: Registry, group: string, version: string): Answer | undefined {
  const kinds = registry.all().filter((kind) => kind.group === group && kind.version === version);
  if (kinds.length === 0) return undefined;
  const resources = kinds.flatMap((kind) => [
    {
      name: kind.plural,
      singularName: kind.singular,
      namespaced: kind.namespaced,
      kind: kind.kind,
      verbs: VERBS,
      shortNames: kind.shortNames,
      categories: kind.categories,
    },
    ...subresourcesOf(kind).map(({ name, responseKind, verbs }) => ({
      name: `${kind.plural}/${name}`,
      singularName: "",
      namespaced: kind.namespaced,
      ...responseKind,
      verbs,
    })),
  ]);
  return jsonAnswer(200, { kind: "APIResourceList", apiVersion: "v1", groupVersion: apiVersionOf({ group, version }), resources });
}

/** Undefined for paths that are not about discovery. */
export function discoveryPage(registry: Registry, url: URL, accept: string): Answer | undefined {
  const [root, ...steps] = url.pathname.split("/").filter(Boolean);
  const wantsAggregated = accept.includes("g=apidiscovery.k8s.io;v=v2;");
  if (root === "api" && steps.length === 0) {
    return wantsAggregated
      ? aggregated(registry, [["", ["v1"]]])
      : jsonAnswer(200, { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] });
  }
  if (root === "api" && steps.length === 1) return resourceList(registry, "", steps[0] ?? "");
  if (root !== "apis") return undefined;
  const groups = versionsByGroup(registry);
  groups.delete("");
  if (steps.length === 0) {
    const all = [...groups].map(([name, versions]) => groupOf(name, versions));
    return wantsAggregated ? aggregated(registry, groups) : jsonAnswer(200, { kind: "APIGroupList", apiVersion: "v1", groups: all });
  }
  const [group = "", version = ""] = steps;
  const versions = groups.get(group);
  if (steps.length === 1 && versions) return jsonAnswer(200, { kind: "APIGroup", apiVersion: "v1", ...groupOf(group, versions) });
  return steps.length === 2 ? resourceList(registry, group, version) : undefined;
}
