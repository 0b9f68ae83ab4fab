/** A history with less in it than its seed drew, and how a command says so. */
import { drawFrom } from "./draw.ts";
import { drawShape, type Shape } from "./shape.ts";

/** What is left out; what is undefined stays as the seed drew it. */
export interface Reduction {
  /** Values of the shape, as they are written in a command: how many zones, for instance. */
  readonly shape: Readonly<Record<string, string>>;
  /** Positions of the actions that are played. */
  readonly actions?: readonly number[] | undefined;
  /** Ids of the faults that happen. */
  readonly strikes?: readonly string[] | undefined;
}

export const WHOLE_HISTORY: Reduction = { shape: {} };

/** What may be missing. */
const OPTIONAL: ReadonlySet<string> = new Set([
  "budget",
  "pageSize",
  "mirrored",
  "gate",
  "phased",
  "certificate",
  "windows",
  "deletions",
  "mistakes",
  "unreadable",
  "incidents",
  "evictions",
  "downscales",
  "answers",
  "watches",
  "firstCalls",
  "aim",
  "percent",
  "minTimes",
  "firstOrdinal",
  "twin",
]);

/** Those of them that are numbers. */
const COUNTED: ReadonlySet<string> = new Set(["budget", "pageSize", "mistakes", "unreadable"]);

/** The shape's values that a command may give: its actions and faults have lists of their own. */
type Value = number | boolean | undefined | string | object;
const isReducible = (key: string, value: unknown): value is Value =>
  OPTIONAL.has(key) ||
  (key !== "actions" && (value === undefined || typeof value !== "object" || Array.isArray(value)));

/** The drawn shape with these values: of a list the first ones. Throws for a name or a value that no shape has. */
export function reduceShape(drawn: Shape, given: Reduction["shape"]): Shape {
  const changed = Object.entries(given).map(([key, text]): [string, Value] => {
    const value = drawn[key as keyof Shape];
    if (!(key in drawn) || !isReducible(key, value)) throw new Error(`no shape has ${key}`);
    return [key, reduceValue(key, value, text)];
  });
  return { ...drawn, ...Object.fromEntries(changed) };
}

function reduceValue(key: string, value: Value, text: string): Value {
  if (text === "none" && (OPTIONAL.has(key) || value === undefined)) return undefined;
  if (typeof value === "boolean" && /^(?:true|false)$/.test(text)) return text === "true";
  if (value === undefined && COUNTED.has(key) && /^\d+$/.test(text)) return Number(text);
  if (!/^\d+$/.test(text) || !isSized(value)) throw new Error(`${key} cannot be ${JSON.stringify(text)}`);
  return Array.isArray(value) ? value.slice(0, Number(text)) : Number(text);
}

/** The least with which a world can still be played. */
const LEAST: Readonly<Partial<Record<keyof Shape, number>>> = {
  zones: 1,
  replicas: 1,
  maxUnavailable: 1,
  webhookServers: 1,
  readyAfterMs: 100,
  exitAfterMs: 100,
  troubledMs: 3000,
};
/** A number, or a list of which the first ones may be left. */
const isSized = (value: Value): value is number | readonly unknown[] =>
  typeof value === "number" || Array.isArray(value);

/** Smaller values of the shape to try, the smallest first: each with its name, as a command has them. */
export function smallerShapes(shape: Shape): [key: string, value: string][] {
  return Object.entries(shape).flatMap(([key, value]: [string, unknown]) =>
    isReducible(key, value)
      ? smallerValues(LEAST[key as keyof Shape] ?? 0, value, OPTIONAL.has(key)).map((text): [string, string] => [
          key,
          text,
        ])
      : [],
  );
}

function smallerValues(least: number, value: Value, optional: boolean): string[] {
  if (value === undefined || value === false) return [];
  if (typeof value === "boolean") return ["false"];
  const none = optional ? ["none"] : [];
  if (!isSized(value)) return none;
  const size = typeof value === "number" ? value : value.length;
  const numbers = new Set([least, Math.ceil((least + size) / 2)].filter((smaller) => smaller < size));
  return [...none, ...[...numbers].map(String)];
}

/** What is written of a reduction after `--seed`. */
export function formatReduction({ shape, actions, strikes }: Reduction): string {
  const values = Object.entries(shape).map(([key, value]) => `${key}=${value}`);
  return [
    ...(values.length > 0 ? [`--with ${values.join(",")}`] : []),
    ...(actions ? [`--actions ${actions.join(",") || "none"}`] : []),
    ...(strikes ? [`--strikes ${strikes.join(",") || "none"}`] : []),
  ].join(" ");
}

/** The command that plays this history again. */
export const commandOf = (seed: number, reduction = WHOLE_HISTORY): string =>
  `npm run simulate -- --seed ${seed} ${formatReduction(reduction)}`.trimEnd();

/** The same from the options of a command. Throws with what is wrong. */
export function parseReduction(given: { with?: string; actions?: string; strikes?: string }): Reduction {
  const shape = Object.fromEntries(listOf(given.with ?? "").map((text) => text.split("=", 2))) as Reduction["shape"];
  reduceShape(drawShape(drawFrom(0)), shape);
  const actions = given.actions === undefined ? undefined : listOf(given.actions).map(Number);
  if (actions?.some(Number.isNaN)) throw new Error(`--actions has positions of actions, not ${given.actions}`);
  return { shape, actions, strikes: given.strikes === undefined ? undefined : listOf(given.strikes) };
}

const listOf = (text: string): string[] => (text === "" || text === "none" ? [] : text.split(","));
