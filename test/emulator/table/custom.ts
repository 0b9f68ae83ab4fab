/** Printer columns of custom resources: the simple JSON paths that definitions use. */
import type { Column as Definition } from "../crd/kinds.ts";
import { isFields } from "../objects.ts";
import type { Column } from "./columns.ts";
import { ageOf } from "./duration.ts";

/** `.spec.a`, `.a['b.c']`, `.a["b"]`, `.list[0]`, `.list[*].x`, `.list[?(@.type=="Ready")].status`. */
const STEP = /\.((?:\\.|[^.[\]\\])+)|\['([^']+)'\]|\["([^"]+)"\]|\[(\d+|\*)\]|\[\?\(@\.([\w.]+)\s*==\s*["']([^"']*)["']\)\]/g;

/** All values at the path, in order. */
export function valuesAt(object: unknown, path: string): unknown[] {
  let found: unknown[] = [object];
  for (const [, dotted, single, double, index, field, wanted] of path.matchAll(STEP)) {
    const key = dotted?.replaceAll("\\", "") ?? single ?? double;
    found = found.flatMap((value) => {
      if (key !== undefined) return isFields(value) && value[key] !== undefined ? [value[key]] : [];
      if (!Array.isArray(value)) return [];
      if (index !== undefined) return index === "*" ? value : value.slice(Number(index), Number(index) + 1);
      return value.filter((item: unknown) => isFields(item) && String(item[field ?? ""]) === wanted);
    });
  }
  return found;
}

export function customColumns(definitions: readonly Definition[]): Column[] {
  return definitions.map(({ jsonPath, ...column }) => ({
    ...column,
    cell: (object, now) => {
      const [value] = valuesAt(object, jsonPath);
      if (value === undefined || value === null) return null;
      if (column.type === "date") return ageOf(value, now);
      return isFields(value) || Array.isArray(value) ? JSON.stringify(value) : value;
    },
  }));
}
