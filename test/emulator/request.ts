/** A request in the API's terms, read off the path and the query. */
import { notAllowed, notFound, refusal } from "./api-error.ts";
import type { Registry, Served } from "./registry.ts";
import type { ResourceKey } from "./store.ts";
import type { User } from "./tokens.ts";
import type { Form } from "./wire.ts";

export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";

export interface Ask {
  readonly verb: Verb;
  readonly kind: Served;
  readonly resource: ResourceKey;
  readonly namespace: string | undefined;
  /** "" for a request about the collection. */
  readonly name: string;
  readonly subresource: string;
  readonly query: URLSearchParams;
  readonly form: Form;
  readonly contentType: string;
  readonly body: string;
  readonly user: User;
  readonly dryRun: boolean;
  /** The emulator's time, ms since the epoch. */
  readonly now: () => number;
  /** Texts for Warning headers, gathered on the way. */
  readonly warnings: string[];
}

export interface Answer {
  readonly code: number;
  readonly body: string | Buffer;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Target = Pick<Ask, "verb" | "kind" | "resource" | "namespace" | "name" | "subresource">;

const WRITES: Readonly<Record<string, Verb>> = { POST: "create", PUT: "update", PATCH: "patch" };

function verbOf(method: string, name: string, query: URLSearchParams): Verb {
  if (method === "GET" || method === "HEAD") {
    const isWatch = ["1", "true"].includes(query.get("watch") ?? "");
    if (isWatch) return "watch";
    return name ? "get" : "list";
  }
  if (method === "DELETE" && name) return "delete";
  const verb = WRITES[method];
  if (!verb) throw notAllowed();
  return verb;
}

/** Undefined when the path is not below /api or /apis, or its group is unknown; throws NotFound for a resource that is not served. */
export function targetOf(registry: Registry, method: string, url: URL): Target | undefined {
  const [root, ...steps] = url.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  if (root !== "api" && root !== "apis") return undefined;
  const group = root === "api" ? "" : (steps.shift() ?? "");
  const version = steps.shift() ?? "";
  // /namespaces/x/pods is about pods; /namespaces/x and /namespaces/x/status are about the namespace.
  const isScoped = steps[0] === "namespaces" && steps.length > 2 && steps[2] !== "status";
  const namespace = isScoped ? steps.splice(0, 2)[1] : undefined;
  const [plural = "", name = "", subresource = "", ...extra] = steps;
  const kind = registry.find(group, version, plural);
  if (kind && method === "POST" && (Boolean(name) !== Boolean(subresource) || (kind.namespaced && namespace === undefined)))
    throw notAllowed();
  // Of groups and versions that it does not serve the server knows nothing at all.
  if (!kind && !registry.all().some((one) => one.group === group && one.version === version)) return undefined;
  if (kind?.custom && subresource && !kind.subresources.includes(subresource)) throw notFound(kind.resource, name);
  if (!kind || extra.length > 0 || (subresource && !kind.subresources.includes(subresource)) || (isScoped && !kind.namespaced))
    throw refusal("NotFound", "the server could not find the requested resource", {});
  return { verb: verbOf(method, name, url.searchParams), kind, resource: kind.resource, namespace, name, subresource };
}
