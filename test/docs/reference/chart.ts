/** The values of the chart, and those that its schema refuses. */

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
/** Values that are objects of Kubernetes. */
const WHOLE = /(?:resources|[sS]ecurityContext)$/;

/** Each value by its path, with its default. */
export const leavesOf = (values: unknown): Map<string, unknown> => new Map(leavesBelow(values, ""));

function leavesBelow(value: unknown, path: string): [string, unknown][] {
  if (!isObject(value) || Object.keys(value).length === 0 || WHOLE.test(path)) return [[path, value]];
  return Object.entries(value).flatMap(([key, child]) => leavesBelow(child, path ? `${path}.${key}` : key));
}

interface Node {
  readonly $ref?: string;
  readonly then?: { readonly const?: string };
  readonly properties?: Readonly<Record<string, Node>>;
  readonly definitions?: Readonly<Record<string, Node>>;
}

/** The values that the schema refuses, by their paths, each with its sentence. */
export function refusalsIn(schema: Node): Map<string, string> {
  const { definitions = {} } = schema;
  const below = ({ $ref, then, properties = {} }: Node, path: string): [string, string][] => {
    if ($ref !== undefined) return below(definitions[$ref.split("/").at(-1) ?? ""] ?? {}, path);
    const own: [string, string][] = then?.const === undefined ? [] : [[path, then.const]];
    const children = Object.entries(properties).flatMap(([key, child]) => below(child, path ? `${path}.${key}` : key));
    return [...own, ...children];
  };
  return new Map(below(schema, ""));
}
