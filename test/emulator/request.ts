/** What a request asks for in the API's terms, and what the handlers of requests work with. */
import type { createAdmission } from "./admission/admission.ts";
import { notAllowed, refusal } from "./api-error.ts";
import type { Clock } from "./clock.ts";
import type { Faults } from "./faults.ts";
import type { Registry } from "./registry.ts";
import type { Store } from "./store.ts";
import type { Tokens, User } from "./tokens.ts";

export interface Api {
  readonly store: Store;
  readonly clock: Clock;
  readonly registry: Registry;
  readonly faults: Faults;
  readonly tokens: Tokens;
  readonly admission: ReturnType<typeof createAdmission>;
}

type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";

type Target = NonNullable<ReturnType<typeof targetOf>>;

export interface Ask extends Target {
  readonly query: URLSearchParams;
  /** What the client wants back of each object. */
  readonly form: "object" | "metadata" | "table";
  readonly contentType: string;
  /** The body as JSON; an empty object when there is none. */
  readonly body: unknown;
  readonly user: User;
  readonly dryRun: boolean;
  /** The emulator's time, ms since the epoch. */
  readonly now: () => number;
  /** Texts for Warning headers, gathered on the way. */
  readonly warnings: string[];
}

const WRITES: Readonly<Record<string, Verb>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };

function verbOf(method: string, name: string, query: URLSearchParams): Verb {
  if (method === "GET" && query.has("watch")) return "watch";
  return WRITES[method] ?? (name ? "get" : "list");
}

/** What a path is about; the name of a collection is "". Undefined where no group is served, throws NotFound where no resource is. */
export function targetOf(registry: Registry, method: string, { pathname, searchParams }: URL) {
  const [root, ...steps] = pathname.split("/").filter(Boolean).map(decodeURIComponent);
  if (root !== "api" && root !== "apis") return undefined;
  const group = root === "api" ? "" : (steps.shift() ?? "");
  const version = steps.shift() ?? "";
  // /namespaces/x/pods is about pods, /namespaces/x about the namespace.
  const namespace = steps[0] === "namespaces" && steps.length > 2 ? steps.splice(0, 2)[1] : undefined;
  const [plural = "", name = "", subresource = ""] = steps;
  const kind = registry.find(group, version, plural);
  // Of groups and versions that it does not serve the server knows nothing at all.
  if (!plural || (!kind && !registry.all().some((one) => one.group === group && one.version === version))) return undefined;
  if (!kind || (subresource && !kind.subresources.includes(subresource)))
    throw refusal("NotFound", "the server could not find the requested resource", {});
  const verb = verbOf(method, name, searchParams);
  const isPlaced = verb === "create" ? !name || subresource : name || method === "GET";
  const isScoped = kind.namespaced === (namespace !== undefined) || method === "GET";
  if (!isPlaced || !isScoped) throw notAllowed();
  return { verb, kind, resource: kind.resource, namespace, name, subresource };
}
