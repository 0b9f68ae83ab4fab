/**
 * What histories reached, counted in cells: faults at call sites, reasons of the closed lists, rules that had an
 * opinion, errors, catch blocks and retries of the product.
 */
import { changeOnLoad, rewriteOnLoad } from "./load.ts";

/** In how many of the seeds each cell was reached; 0 for those that exist and were not. */
interface Reach {
  readonly seeds: number;
  readonly cells: ReadonlyMap<string, number>;
}

const noted = new Set<string>();
const listed = new Set<string>();
/** Rules by the file of the list that they are in first. */
const rules = new WeakMap<object, string>();
declare global {
  /** Called by the product's decisions as they are changed by `startReach`. */
  var noteReached: (cell: string) => void;
  var noteListed: (cell: string) => void;
  var noteRule: (rule: { readonly name: string }) => void;
  var noteOpinion: (rule: object) => void;
  var noteSecond: <T>(cell: string, attempt: () => T) => () => T;
}

/** A rule without a name is a list of others. */
function nameRule(rule: { readonly name: string }): void {
  if (rule.name === "" || rules.has(rule)) return;
  // this function <- firstOf <- the file of the list
  const [, file = ""] =
    /\/((?:reconciler|functions|infra)\/[^:]+):/.exec(new Error().stack?.split("\n")[3] ?? "") ?? [];
  const cell = `rule ${file} ${rule.name}`;
  rules.set(rule, cell);
  listed.add(cell);
}

/** Lists say what is in them. */
const LISTS = [
  ["reconciler/model/decision.ts", "} as const satisfies Record<string, ReasonFacts>;", "REASONS", "hold"],
  [
    "reconciler/budget/verdict.ts",
    "} as const satisfies Readonly<Record<string, VerdictFacts>>;",
    "VERDICTS",
    "verdict",
  ],
  ["infra/errors.ts", "} as const satisfies Readonly<Record<string, ErrorFacts>>;", "CODES", "error"],
].map(([file = "", find = "", list, kind]) => ({
  file,
  find,
  replacement: `${find}\nfor (const name of Object.keys(${list})) noteListed("${kind} " + name);`,
}));
/** Why a node does not start, and how its attempt ends. */
const NODES = [
  ...(
    [
      ["SkipReason", "SKIP_REASONS", "skip"],
      ["FailureReason", "FAILURE_REASONS", "ending"],
    ] as const
  ).map(([type, list, kind]) => {
    const find = `export type ${type} = (typeof ${list})[number];`;
    const replacement = `${find}\nfor (const name of ${list}) noteListed("${kind} " + name);`;
    return { file: "reconciler/nodes/snapshot.ts", find, replacement };
  }),
  {
    file: "reconciler/nodes/act/update-nodes.ts",
    find: "const { active } = plan.status;",
    replacement: `const { active } = plan.status;
    for (const { reason } of plan.skips) noteReached("skip " + reason);
    for (const { step } of plan.steps) if ("reason" in step) noteReached("ending " + step.reason);`,
  },
];
/** Decisions say which reason, rule and error they come to. */
const PROBES = [
  ...LISTS,
  ...NODES,
  {
    file: "infra/rules.ts",
    find: "return (...subject) => {",
    replacement: `for (const rule of rules) noteRule(rule);\n  return (...subject) => {`,
  },
  {
    file: "infra/rules.ts",
    find: "if (decision !== undefined) return decision;",
    replacement: `if (decision !== undefined) {\n noteOpinion(rule);\n return decision;\n}`,
  },
  {
    file: "reconciler/model/decision.ts",
    find: `return { action: "hold", reason, message, objects };`,
    replacement: `noteReached("hold " + reason);\n  return { action: "hold", reason, message, objects };`,
  },
  {
    file: "reconciler/budget/verdict.ts",
    find: "return { reason, message, objects };",
    replacement: `noteReached("verdict " + reason);\n  return { reason, message, objects };`,
  },
  {
    file: "infra/errors.ts",
    find: "super(message, details.cause",
    replacement: `noteReached("error " + code);\n    super(message, details.cause`,
  },
];

/** Where a catch block or the callback of a `.catch` begins, and an attempt that may be repeated. */
const PLACES =
  /\bcatch (?:\(\w+\) )?\{|\.catch\(\s*(?:async )?\((?:error: unknown)?\)(?:: \w+(?:<\w+>)?)? =>(?: \{)?|\bretryOnConflict\(attempt,/g;
/** What a place is in, by the line that begins it. */
const OWNER = /^ *(?:export )?(?:async )?(?:function\*? (\w+)|const (\w+) = (?:async )?\(|(?:async )?(\w+)\(.*\{$)/gm;
const KEYWORDS: ReadonlySet<string | undefined> = new Set(["if", "for", "while", "switch", "catch"]);

/** Has each catch block and each second attempt of a file say that it runs; names them all to `list`. */
export function noteCatches(path: string, source: string, list: (cell: string) => void): string {
  const seen = new Map<string, number>();
  return source.replaceAll(PLACES, (place, at: number) => {
    const owners = [...source.slice(0, at).matchAll(OWNER)].map(([, ...names]) => names.find((name) => name));
    const name = owners.findLast((owner) => !KEYWORDS.has(owner)) ?? "-";
    const isRetry = place.startsWith("retry");
    const key = `${isRetry ? "retry" : "catch"} ${path} ${name}`;
    const times = (seen.get(key) ?? 0) + 1;
    seen.set(key, times);
    const cell = JSON.stringify(times === 1 ? key : `${key} ${times}`);
    list(JSON.parse(cell) as string);
    if (isRetry) return `retryOnConflict(noteSecond(${cell}, attempt),`;
    return place.endsWith("{") ? `${place} noteReached(${cell});` : `${place} noteReached(${cell}) ??`;
  });
}

function noteSecond<T>(cell: string, attempt: () => T): () => T {
  let times = 0;
  return () => {
    if (times++ > 0) noted.add(cell);
    return attempt();
  };
}

interface ReachCount {
  /** Counts what was reached since the last call as one seed's. */
  readonly endSeed: (faults: ReadonlyMap<string, number>) => void;
  readonly result: () => Reach;
}

/** To be called before anything of the product is imported. */
export function startReach(): ReachCount {
  globalThis.noteReached = (cell) => void noted.add(cell);
  globalThis.noteListed = (cell) => void listed.add(cell);
  globalThis.noteRule = nameRule;
  globalThis.noteOpinion = (rule) => {
    const cell = rules.get(rule);
    if (cell !== undefined) noted.add(cell);
  };
  globalThis.noteSecond = noteSecond;
  changeOnLoad(PROBES);
  rewriteOnLoad((path, source) => noteCatches(path, source, (cell) => void listed.add(cell)));
  const cells = new Map<string, number>();
  let seeds = 0;
  const count = (cell: string, by: number): void => void cells.set(cell, (cells.get(cell) ?? 0) + by);
  // What ran before the first seed is nobody's.
  noted.clear();
  return {
    endSeed(faults) {
      seeds++;
      for (const [cell, times] of faults) count(`fault ${cell}`, Math.min(times, 1));
      for (const cell of noted) count(cell, 1);
      noted.clear();
      for (const cell of listed) count(cell, 0);
    },
    result: () => ({ seeds, cells }),
  };
}

/** A line a cell, in the order of their names, so that two counts can be compared. */
export function formatReach({ seeds, cells }: Reach): string {
  const lines = [...cells].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const reached = lines.filter(([, times]) => times > 0);
  return [
    ...lines.map(([cell, times]) => `${times === 0 ? "never" : times}\t${cell}`),
    `${reached.length} of ${cells.size} cells were reached by ${seeds} histories`,
  ].join("\n");
}
