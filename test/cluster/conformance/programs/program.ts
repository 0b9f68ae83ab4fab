/** A program: calls to the API of one namespace, which can be played on any cluster. */
import { fieldsOf, isFields } from "../../../emulator/objects.ts";
import { mergePatch } from "../../../emulator/patch.ts";
import type { Request } from "../client.ts";
import { at } from "../requests.ts";

/**
 * One call. Its texts may refer to what was seen of an object before the call:
 *
 *     @version configmaps/a    its resourceVersion        @uid configmaps/a       its UID
 *     @older configmaps/a      the first one it had       @former configmaps/a    the UID of one before it
 *     @continue configmaps     the token of the last page of a list       @namespace
 *
 * `{"@edit": "configmaps/a", "with": {...}, "else": {...}}` is the object as it was last seen, or else this one, with a
 * merge patch.
 */
export interface Call {
  readonly method: string;
  /** Below the namespace: plural, name, subresource. A name that ends in "*" is the last one generated with it. */
  readonly path: string;
  readonly query?: string;
  readonly type?: string;
  readonly body?: unknown;
}

/** Calls that are sent at once; mostly one. */
type Step = readonly Call[];
export type Program = readonly Step[];

/** What references are resolved by. */
export interface Sight {
  readonly namespace: string;
  /** The object, or undefined if there is none. */
  readonly object: (path: string) => object | undefined;
  /** The resourceVersions of the object that is there, the oldest first. */
  readonly versions: (path: string) => readonly string[];
  /** The UIDs of all objects of this name, the oldest first. */
  readonly uids: (path: string) => readonly string[];
  readonly continued: (plural: string) => string;
  readonly generated: (prefix: string) => string;
}

/** Some UID that nothing has. */
export const NO_UID = "11111111-2222-3333-4444-555555555555";

const REFERENCES: Readonly<Record<string, (sight: Sight, path: string) => string>> = {
  version: (sight, path) => sight.versions(path).at(-1) ?? "1",
  older: (sight, path) => sight.versions(path)[0] ?? "1",
  uid: (sight, path) => sight.uids(path).at(-1) ?? NO_UID,
  former: (sight, path) => sight.uids(path).at(-2) ?? NO_UID,
  continue: (sight, path) => sight.continued(path),
  namespace: (sight) => sight.namespace,
};

/** The call as a request. */
export function requestOf({ method, path, query, type, body }: Call, sight: Sight): Request {
  const [plural = "", name = "", ...rest] = path.split("/");
  const named = name.endsWith("*") ? sight.generated(name.slice(0, -1)) : name;
  const url = at(sight.namespace, plural, ...[named, ...rest].filter(Boolean));
  const asked =
    query && query.replaceAll(/@\w+ [\w/*.-]+/g, (text) => encodeURIComponent(String(resolve(text, sight))));
  return {
    method,
    path: asked ? `${url}?${asked}` : url,
    ...(type && { type }),
    ...(body !== undefined && { body: resolve(body, sight) }),
  };
}

function resolve(value: unknown, sight: Sight): unknown {
  if (typeof value === "string") {
    const [, kind = "", path = ""] = /^@(\w+) ?(.*)$/.exec(value) ?? [];
    return REFERENCES[kind]?.(sight, path) ?? value;
  }
  if (Array.isArray(value)) return value.map((one) => resolve(one, sight));
  if (!isFields(value)) return value;
  const path = value["@edit"];
  if (typeof path === "string")
    return mergePatch(sight.object(path) ?? fieldsOf(value["else"]), resolve(value["with"], sight));
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolve(one, sight)]));
}

/** One line for each call. */
export function describeStep(step: Step): string {
  return step
    .map(({ method, path, query, type, body }) =>
      [
        `${method} ${path}${query ? `?${query}` : ""}`,
        type?.replace(/^application\/|\+json$/g, ""),
        body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
      ]
        .filter(Boolean)
        .join(" "),
    )
    .join("  and at once  ");
}
