/** A request in the API's terms. */
import { methodNotAllowed, noSuchResource } from "./api-error.ts";
import type { Registry, Served } from "./registry.ts";
import type { User } from "./tokens.ts";

type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection";

type Target = NonNullable<ReturnType<typeof parseTarget>>;

export interface ApiRequest extends Target {
  readonly query: URLSearchParams;
  /** How the client wants each object returned. */
  readonly form: "object" | "protobuf" | "metadata" | "table";
  readonly contentType: string;
  /** The parsed body; an empty object if there is none. */
  readonly body: unknown;
  readonly user: User;
  readonly dryRun: boolean;
  /** The emulator's time, ms since the epoch. */
  readonly now: () => number;
  /** Texts for Warning headers, collected while the request is handled. */
  readonly warnings: string[];
}

const WRITES: Readonly<Record<string, Verb>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };

function verbOf(method: string, name: string, query: URLSearchParams): Verb {
  if (method === "GET" && query.has("watch")) return "watch";
  if (method === "DELETE" && !name) return "deletecollection";
  return WRITES[method] ?? (name ? "get" : "list");
}

/**
 * Parses verb and resource; a collection's name is "". Returns undefined if the group and version are not
 * served; throws NotFound if the resource is not.
 */
export function parseTarget(
  registry: Registry,
  method: string,
  { pathname, searchParams }: Pick<URL, "pathname" | "searchParams">,
) {
  const path = parsePath(pathname);
  const kind = path && findKind(registry, path);
  if (!kind) return undefined;
  const { namespace, name, subresource } = path;
  const verb = verbOf(method, name, searchParams);
  const methodFits = verb === "create" ? !name || subresource : name || ["GET", "DELETE"].includes(method);
  const scopeFits = kind.namespaced === (namespace !== undefined) || method === "GET";
  if (!methodFits || !scopeFits) throw methodNotAllowed();
  return { verb, kind, resource: kind.resource, namespace, name, subresource };
}

type ResourcePath = NonNullable<ReturnType<typeof splitPath>>;

const paths = new Map<string, ReturnType<typeof splitPath>>();
const MAX_PATHS = 10_000;

/** Most paths are asked for again and again. */
function parsePath(pathname: string): ReturnType<typeof splitPath> {
  const known = paths.get(pathname);
  if (known) return known;
  if (paths.size === MAX_PATHS) paths.clear();
  const path = splitPath(pathname);
  paths.set(pathname, path);
  return path;
}

/** Splits the path of a resource; undefined for other paths. */
function splitPath(pathname: string) {
  const [root, ...steps] = pathname.split("/").filter(Boolean).map(decodeURIComponent);
  if (root !== "api" && root !== "apis") return undefined;
  const group = root === "api" ? "" : (steps.shift() ?? "");
  const version = steps.shift() ?? "";
  // /namespaces/x/pods names pods, /namespaces/x names the Namespace.
  const namespace = steps[0] === "namespaces" && steps.length > 2 ? steps.splice(0, 2)[1] : undefined;
  const [plural = "", name = "", subresource = ""] = steps;
  return { group, version, plural, namespace, name, subresource };
}

function findKind(registry: Registry, { group, version, plural, subresource }: ResourcePath): Served | undefined {
  const kind = registry.find(group, version, plural);
  const isServed =
    kind !== undefined || registry.all().some((served) => served.group === group && served.version === version);
  // The real server answers unknown groups and versions with a plain 404 page.
  if (!plural || !isServed) return undefined;
  if (!kind || (subresource && !kind.subresources.includes(subresource))) throw noSuchResource();
  return kind;
}
