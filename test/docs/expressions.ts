/** Every query of a check in the documentation and the examples. */
import { globSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { PAGES, readPage, ROOT } from "./pages.ts";

interface Found {
  readonly expr: string;
  readonly successWhen: string;
}

interface Query {
  readonly expr?: unknown;
  readonly successWhen?: string;
}

interface Checked {
  readonly query: Query;
  readonly baseline: Query;
  readonly successWhen: string;
}

/** Every query in a value, however deep. */
function queriesIn(value: unknown): Found[] {
  if (typeof value !== "object" || value === null) return [];
  const { query, baseline, successWhen = "NoData", ...rest } = value as Partial<Checked>;
  const own = [query, baseline].flatMap((one) =>
    typeof one?.expr === "string" ? [{ expr: one.expr, successWhen: query?.successWhen ?? successWhen }] : [],
  );
  return [...own, ...Object.values(rest).flatMap(queriesIn)];
}

const blocksOf = (page: string): string[] => [...page.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, text = ""]) => text);
export const EXAMPLES = globSync("examples/**/*.yaml", { cwd: ROOT });
const SOURCES = [
  ...PAGES.flatMap((path) => blocksOf(readPage(path)).map((text) => ({ path, text }))),
  ...EXAMPLES.map((path) => ({ path, text: readPage(path) })),
];
export const FOUND = SOURCES.flatMap(({ path, text }) =>
  parseAllDocuments(text).flatMap((one) => queriesIn(one.toJS()).map((query) => ({ path, ...query }))),
);
