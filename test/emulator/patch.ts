/**
 * JSON Patch (RFC 6902), JSON Merge Patch (RFC 7386) and Kubernetes' strategic merge patch. None mutates its
 * arguments.
 */
import { applyPatch, type Operation, Pointer } from "rfc6902";
import { patchRejected } from "./api-error.ts";
import { copyOf, type Fields, isFields, listOf } from "./objects.ts";

/** RFC 6902. Throws Invalid if an operation cannot be applied to the document or a test fails. */
export function jsonPatch(document: unknown, operations: unknown): unknown {
  const result = copyOf(document);
  try {
    for (const operation of operations as Operation[])
      if (applyPatch(result, [asServed(result, operation)]).some((error) => error !== null)) throw patchRejected();
    return result;
  } catch {
    // Operations that are not a list, or an invalid path: rejected like those with errors.
    throw patchRejected();
  }
}

/** The server's library replaces a field of an object that is not there, against the RFC. */
function asServed(document: unknown, operation: Operation): Operation {
  if (operation.op !== "replace") return operation;
  const { parent, value } = Pointer.fromJSON(operation.path).evaluate(document) as { parent: unknown; value: unknown };
  return isFields(parent) && value === undefined ? { ...operation, op: "add" } : operation;
}

/**
 * For each list field the fields that identify its items (patchMergeKey in k8s.io/api); none for lists of
 * plain values. All other lists are replaced as a whole.
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

/** RFC 7386: null removes, objects merge, everything else replaces. */
export const mergePatch = (target: unknown, patch: unknown): unknown => merge(target, patch, new Map());

/**
 * For the built-in kinds: a merge patch that merges lists by key, with directives in fields that begin with
 * "$".
 */
export const strategicPatch = (target: unknown, patch: unknown): unknown => merge(target, patch, MERGE_KEYS);

function merge(target: unknown, patch: unknown, mergeKeys: typeof MERGE_KEYS): unknown {
  if (!isFields(patch)) return patch;
  const result: Fields = isFields(target) && patch["$patch"] !== "replace" ? { ...target } : {};
  for (const [field, value] of Object.entries(patch)) {
    const keys = mergeKeys.get(field);
    const [directive, list = ""] = field.split("/");
    if (value === null) delete result[field];
    else if (keys && Array.isArray(value))
      result[field] = mergeList(keys, result[field], value, patch[`$setElementOrder/${field}`]);
    else if (directive === "$deleteFromPrimitiveList")
      result[list] = listOf(result[list]).filter((one) => !listOf(value).includes(one));
    else if (!field.startsWith("$")) result[field] = merge(result[field], value, mergeKeys);
  }
  return result;
}

/** Items in kubectl's `order` come first, or new items if there is none, as on the real server. */
function mergeList(keys: readonly string[], target: unknown, patch: readonly unknown[], order: unknown): unknown[] {
  const keyOf = (item: unknown): string => JSON.stringify(isFields(item) ? keys.map((key) => item[key]) : item);
  const hasDirective = (item: unknown, directive: string): boolean => isFields(item) && item["$patch"] === directive;
  const old = patch.some((item) => hasDirective(item, "replace")) ? [] : listOf(target);
  const items = new Map(old.map((item) => [keyOf(item), item]));
  const first = (Array.isArray(order) ? order : patch.filter((item) => !items.has(keyOf(item)))).map(keyOf);
  for (const item of patch) {
    const key = keyOf(item);
    if (hasDirective(item, "delete")) items.delete(key);
    else if (!hasDirective(item, "replace")) items.set(key, merge(items.get(key), item, MERGE_KEYS));
  }
  return [...new Set([...first, ...items.keys()])].flatMap((key) => (items.has(key) ? [items.get(key)] : []));
}
