/** JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386). Neither changes what it is given. */
import { isDeepStrictEqual } from "node:util";
import { unfit } from "./api-error.ts";
import { fieldsOf, isFields } from "./objects.ts";
import type { Fields } from "./objects.ts";

/** RFC 7386: null removes, objects merge, all else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  const result: Fields = isFields(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** RFC 6902. Throws Invalid when an operation does not fit the document or a test fails. */
export function jsonPatch(document: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw unfit();
  return operations.reduce<unknown>((at, operation) => apply(at, operationOf(operation)), document);
}

function operationOf(value: unknown): Operation {
  const { op, path, from, value: argument } = fieldsOf(value);
  if (typeof op !== "string" || typeof path !== "string") throw unfit();
  return { op, path, ...(typeof from === "string" && { from }), ...(argument !== undefined && { value: argument }) };
}

function apply(document: unknown, { op, path, from, value }: Operation): unknown {
  const at = pointer(path);
  switch (op) {
    case "add":
      return edit(document, at, () => value, true);
    case "replace":
      read(document, at);
      return edit(document, at, () => value, false);
    case "remove":
      read(document, at);
      return edit(document, at, undefined, false);
    case "test":
      if (!isDeepStrictEqual(readOrNull(document, at), value ?? null)) throw unfit();
      return document;
    case "copy":
      return edit(document, at, () => read(document, pointer(from ?? "")), true);
    case "move": {
      const moved = read(document, pointer(from ?? ""));
      return edit(edit(document, pointer(from ?? ""), undefined, false), at, () => moved, true);
    }
    default:
      throw unfit();
  }
}

function pointer(path: string): string[] {
  if (path === "") return [];
  if (!path.startsWith("/")) throw unfit();
  return path
    .slice(1)
    .split("/")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function read(document: unknown, path: readonly string[]): unknown {
  let at = document;
  for (const step of path) {
    if (Array.isArray(at) && index(step, at.length - 1) !== undefined) at = at[Number(step)];
    else if (isFields(at) && Object.hasOwn(at, step)) at = at[step];
    else throw unfit();
  }
  return at;
}

/** A test for null passes on a field that is not there, as evanphx/json-patch has it. */
function readOrNull(document: unknown, path: readonly string[]): unknown {
  const parent = read(document, path.slice(0, -1));
  const last = path.at(-1);
  if (isFields(parent) && last !== undefined && !Object.hasOwn(parent, last)) return null;
  return read(document, path);
}

function index(step: string, last: number): number | undefined {
  if (!/^(0|[1-9]\d*)$/.test(step) || Number(step) > last) return undefined;
  return Number(step);
}

/** A copy with the place at `path` set, or removed when there is no `make`; `insert` makes room in lists. */
function edit(document: unknown, path: readonly string[], make: (() => unknown) | undefined, insert: boolean): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return make ? make() : null;
  if (Array.isArray(document)) {
    const copy: unknown[] = [...document];
    const end = insert && rest.length === 0;
    const i = step === "-" && end ? copy.length : index(step, end ? copy.length : copy.length - 1);
    if (i === undefined) throw unfit();
    if (rest.length > 0) copy[i] = edit(copy[i], rest, make, insert);
    else if (!make) copy.splice(i, 1);
    else copy.splice(i, insert ? 0 : 1, make());
    return copy;
  }
  if (!isFields(document) || (rest.length > 0 && !Object.hasOwn(document, step))) throw unfit();
  const copy = { ...document };
  if (rest.length > 0) copy[step] = edit(copy[step], rest, make, insert);
  else if (make) copy[step] = make();
  else delete copy[step];
  return copy;
}
