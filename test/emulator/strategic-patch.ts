/** Strategic merge patch for the built-in kinds: merge patch whose lists merge by key (patchMergeKey in k8s.io/api). */
import { isDeepStrictEqual } from "node:util";
import { isFields, listOf } from "./objects.ts";
import type { Fields } from "./objects.ts";

/** Merge key by field name; lists that are not here are replaced whole. */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  addresses: "type",
  conditions: "type",
  containers: "name",
  env: "name",
  ephemeralContainers: "name",
  hostAliases: "ip",
  imagePullSecrets: "name",
  initContainers: "name",
  ownerReferences: "uid",
  podIPs: "ip",
  resourceClaims: "name",
  secrets: "name",
  topologySpreadConstraints: "topologyKey",
  volumeDevices: "devicePath",
  volumeMounts: "mountPath",
  volumes: "name",
  webhooks: "name",
};

/** Lists of plain values that merge as sets. */
const SETS = new Set(["finalizers"]);

/** Containers' ports merge by containerPort, a Service's by port. */
function mergeKey(field: string, items: readonly unknown[]): string | undefined {
  if (field !== "ports") return MERGE_KEYS[field];
  return items.some((item) => isFields(item) && "containerPort" in item) ? "containerPort" : "port";
}

export function strategicPatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  if (patch["$patch"] === "replace") return withoutDirectives(patch);
  if (patch["$patch"] === "delete") return {};
  const result: Fields = isFields(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith("$deleteFromPrimitiveList/")) removeFrom(result, key.slice("$deleteFromPrimitiveList/".length), listOf(value));
    if (key.startsWith("$")) continue;
    if (value === null) delete result[key];
    else if (Array.isArray(value)) result[key] = patchList(key, listOf(result[key]), value, patch[`$setElementOrder/${key}`]);
    else result[key] = strategicPatch(result[key], value);
  }
  return result;
}

function removeFrom(result: Fields, field: string, values: readonly unknown[]): void {
  result[field] = listOf(result[field]).filter((item) => !values.includes(item));
}

function patchList(field: string, target: readonly unknown[], patch: readonly unknown[], order: unknown): unknown[] {
  const replaces = patch.some((item) => isFields(item) && item["$patch"] === "replace");
  const items = patch.filter((item) => !isFields(item) || item["$patch"] !== "replace");
  if (SETS.has(field)) return replaces ? items : [...new Set([...target, ...items])];
  const by = mergeKey(field, [...target, ...items]);
  if (replaces || by === undefined) return items.map(withoutDirectives);
  const result = [...target];
  for (const item of items) {
    if (!isFields(item)) continue;
    const i = result.findIndex((candidate) => isFields(candidate) && isDeepStrictEqual(candidate[by], item[by]));
    if (item["$patch"] === "delete") {
      if (i >= 0) result.splice(i, 1);
    } else if (i >= 0) result[i] = strategicPatch(result[i], item);
    else result.push(strategicPatch({}, item));
  }
  return reorder(result, Array.isArray(order) ? order : items, target, by);
}

/**
 * The order of a merged list: the patch's items in `order`, the server's own in theirs, and between the two the server's order where it
 * knows both, else the patch's item first (normalizeElementOrder of apimachinery).
 */
function reorder(items: readonly unknown[], order: readonly unknown[], server: readonly unknown[], by: string | undefined): unknown[] {
  const placeIn = (list: readonly unknown[], item: unknown): number =>
    list.findIndex((one) => isDeepStrictEqual(keyOf(one, by), keyOf(item, by)));
  const own = items.filter((item) => placeIn(order, item) < 0);
  const patched = items.filter((item) => placeIn(order, item) >= 0).toSorted((a, b) => placeIn(order, a) - placeIn(order, b));
  const result: unknown[] = [];
  while (own.length > 0 && patched.length > 0) {
    const [left, right] = [placeIn(server, own[0]), placeIn(server, patched[0])];
    result.push(left >= 0 && right >= 0 && left < right ? own.shift() : patched.shift());
  }
  return [...result, ...own, ...patched];
}

function keyOf(item: unknown, by: string | undefined): unknown {
  return isFields(item) && by !== undefined ? item[by] : item;
}

function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDirectives);
  if (!isFields(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, field]) => (key.startsWith("$") || field === null ? [] : [[key, withoutDirectives(field)]])),
  );
}
