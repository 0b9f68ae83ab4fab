/** Paths of the Kubernetes API: built from a resource, and classified for the metric and the rate limiter. */
import { RolloutError } from "../errors.ts";
import { isPathSegment } from "../path-segment.ts";
import * as customResources from "./custom-resources.ts";
import * as resources from "./resources.ts";

export interface PathParts {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** The path of a collection, an object or its subresource. Throws `Invalid` for a name that cannot stand in it. */
export function pathOf(resource: resources.Resource, { namespace, name, subresource }: PathParts): string {
  const root = resource.group === "" ? ["api"] : ["apis", resource.group];
  const scope = namespace === undefined ? [] : ["namespaces", namespace];
  const object = name === undefined ? [] : [name];
  const below = subresource === undefined ? [] : [subresource];
  // Without a namespace there is no object: a server answers that itself.
  for (const one of [...scope.slice(1).filter((text) => text !== ""), ...object])
    if (!isPathSegment(one)) throw new RolloutError("Invalid", `"${one}" is not a valid object name`);
  return `/${[...root, resource.version, ...scope, resource.plural, ...object, ...below].map(encodeURIComponent).join("/")}`;
}

/** The token bucket a path belongs to (§8.4): `core`, an API group, or `/` and the first segment. */
export function groupOf(path: string): string {
  const [first = "", second = ""] = path.slice(1).split("/");
  if (first === "api") return "core";
  if (first === "apis") return second === "" ? "apis" : second;
  return `/${first}`;
}

/**
 * A path without its names, for the `path` label (§9), K02: `core/v1/pods object`; an unrecognised one is returned
 * unchanged.
 */
export function describePath(path: string): string {
  const match = RESOURCE_PATH.exec(path)?.groups;
  if (!match) return path;
  const { group = "core", version, plural, name, subresource } = match;
  const what = name === undefined ? "collection" : "object";
  return `${group}/${version}/${plural} ${what}${subresource === undefined ? "" : ` ${subresource} subresource`}`;
}

// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris; a Namespace is itself an object of the
// collection `namespaces`.
const RESOURCE_PATH =
  /^\/(?:api|apis\/(?<group>[^/]+))\/(?<version>v\d[^/]*)\/(?:namespaces\/[^/]+\/(?!(?:status|finalize)$))?(?<plural>[^/]+)(?:\/(?<name>[^/]+)(?:\/(?<subresource>[^/]+))?)?$/;

/** What is read or written of a kind: its collection, an object, and the subresources of one. */
const PLACES = [{}, { name: "n" }, { name: "n", subresource: "status" }, { name: "n", subresource: "scale" }];
/** The kinds that Zonewise knows. ReplicaTemplates, of the budgets' group, are what zones mirror most. */
const OWN = [
  ...Object.values({ ...resources, ...customResources }).filter((one) => typeof one !== "function"),
  { ...customResources.disruptionBudgets, plural: "replicatemplates" },
];

/**
 * The paths and groups that have series of their own in metrics. Zones may mirror any kind that a user names: all others
 * share one series.
 */
export const OWN_PATHS: ReadonlySet<string> = new Set(
  OWN.flatMap((resource) => PLACES.map((place) => describePath(pathOf(resource, place)))),
);
export const OWN_GROUPS: ReadonlySet<string> = new Set(OWN.map(({ group }) => group || "core"));
