/** JSON Patch (RFC 6902), JSON Merge Patch (RFC 7386) and Kubernetes' strategic merge patch. None changes what it is given. */
import { applyPatch, type Operation } from "rfc6902";
import { unfit } from "./api-error.ts";
import { type Fields, isFields, listOf } from "./objects.ts";

/** RFC 6902. Throws Invalid when an operation does not fit the document or a test fails. */
export function jsonPatch(document: unknown, operations: unknown): unknown {
  const result = structuredClone(document);
  try {
    const errors = applyPatch(result, operations as Operation[]);
    if (errors.every((error) => error === null)) return result;
  } catch {
    // No list of operations, or a path that is none: as unfit as those that it answers errors for.
  }
  throw unfit();
}

/**
 * By a list's field, the fields that tell its items apart (patchMergeKey in k8s.io/api); plain values need none. Lists that are not here
 * are replaced whole.
 */
const MERGE_KEYS: ReadonlyMap<string, readonly string[]> = new Map([
  ["conditions", ["type"]],
  ["containers", ["name"]],
  ["env", ["name"]],
  ["finalizers", []],
  ["initContainers", ["name"]],
  ["ownerReferences", ["uid"]],
  // Of containers, and of Services.
  ["ports", ["containerPort", "port"]],
  ["volumeMounts", ["mountPath"]],
  ["volumes", ["name"]],
  ["webhooks", ["name"]],
]);

/** RFC 7386: null removes, objects merge, all else replaces. */
export const mergePatch = (target: unknown, patch: unknown): unknown => merge(target, patch, new Map());

/** For the built-in kinds: a merge patch whose lists merge by key, with directives in fields that begin with "$". */
export const strategicPatch = (target: unknown, patch: unknown): unknown => merge(target, patch, MERGE_KEYS);

function merge(target: unknown, patch: unknown, mergeKeys: typeof MERGE_KEYS): unknown {
  if (!isFields(patch)) return patch;
  const result: Fields = isFields(target) && patch["$patch"] !== "replace" ? { ...target } : {};
  for (const [field, value] of Object.entries(patch)) {
    const keys = mergeKeys.get(field);
    const [directive, list = ""] = field.split("/");
    if (value === null) delete result[field];
    else if (keys && Array.isArray(value)) result[field] = mergeList(keys, result[field], value, patch[`$setElementOrder/${field}`]);
    else if (directive === "$deleteFromPrimitiveList") result[list] = listOf(result[list]).filter((one) => !listOf(value).includes(one));
    else if (!field.startsWith("$")) result[field] = merge(result[field], value, mergeKeys);
  }
  return result;
}

/** In front come the items that kubectl's `order` names, or else those that are new, as on the real server. */
function mergeList(keys: readonly string[], target: unknown, patch: readonly unknown[], order: unknown): unknown[] {
  const keyOf = (item: unknown): string => JSON.stringify(isFields(item) ? keys.map((key) => item[key]) : item);
  const does = (item: unknown, directive: string): boolean => isFields(item) && item["$patch"] === directive;
  const old = patch.some((item) => does(item, "replace")) ? [] : listOf(target);
  const items = new Map(old.map((item) => [keyOf(item), item]));
  const inFront = (Array.isArray(order) ? order : patch.filter((item) => !items.has(keyOf(item)))).map(keyOf);
  for (const item of patch) {
    const key = keyOf(item);
    if (does(item, "delete")) items.delete(key);
    else if (!does(item, "replace")) items.set(key, merge(items.get(key), item, MERGE_KEYS));
  }
  return [...new Set([...inFront, ...items.keys()])].flatMap((key) => (items.has(key) ? [items.get(key)] : []));
}
