/**
 * The generated tables of the documentation: each is made of a table of the code. What is said of a row in words is
 * written in the page, in the row that begins with its name, and stays as it is written.
 */
import { globSync } from "node:fs";
import { parse, parseAllDocuments } from "yaml";
import { safeParse } from "zod/mini";
import * as targets from "../../../functions/index.ts";
import { COMMANDS } from "../../../cli/program.ts";
import { GLOBAL_FLAGS } from "../../../cli/flags.ts";
import { VARIABLE_ROWS } from "../../../infra/config/variables.ts";
import { shortDuration } from "../../../infra/duration.ts";
import { messageOf } from "../../../infra/errors.ts";
import type { MetricRow } from "../../../infra/metrics/registry.ts";
import { METRICS } from "../../../infra/metrics/tables/metric-table.ts";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { ANNOTATIONS, LABELS } from "../../../reconciler/model/annotations.ts";
import { type ReasonFacts, REASONS } from "../../../reconciler/model/decision.ts";
import { FAILURE_REASONS, SKIP_REASONS } from "../../../reconciler/nodes/snapshot.ts";
import { PROMISES } from "../../drill/judge.ts";
import { STAGES } from "../../drill/plan.ts";
import { readPage, readSources, ROOT } from "../pages.ts";
import { ORIGINAL_FLAGS, variableOf } from "./flags.ts";
import { leavesOf, refusalsIn } from "./chart.ts";
import { CHECKS } from "../../../cli/decide/doctor/checks.ts";

const code = (text: string): string => `\`${text}\``;
const codeOrNone = (text: string): string => (text === "" ? "" : code(text));
const table = (heads: readonly string[], rows: readonly (readonly string[])[]): string =>
  [heads, heads.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`.replaceAll("|  |", "| |"))
    .join("\n");

/** A block as it is in its page: the cells of each row by the name in the first one. */
type Written = ReadonlyMap<string, readonly string[]>;

const readRows = (block: string): Written =>
  new Map(
    [...block.matchAll(/^\| `(?<name>[^`]+)` \|(?<cells>.*)\|$/gm)].map(
      ({ groups: { name = "", cells = "" } = {} }) => [name, cells.split("|").map((cell) => cell.trim())],
    ),
  );

/** Throws unless the rows in the page are of these names and no others. */
function match(written: Written, names: Iterable<string>): void {
  const wanted = new Set(names);
  const missing = [...wanted].filter((name) => !written.has(name));
  const extra = [...written.keys()].filter((name) => !wanted.has(name));
  if (missing.length + extra.length > 0)
    throw new Error(
      `write rows of ${missing.join(", ") || "nothing"}; remove those of ${extra.join(", ") || "nothing"}`,
    );
}

/** The last cells of a row, which are written by hand; throws if one says nothing. */
function wordsOf(written: Written, name: string, count: number): readonly string[] {
  const words = written.get(name)?.slice(-count) ?? [];
  if (words.length < count || words.includes("")) throw new Error(`the row of ${name} says nothing`);
  return words;
}

/** The block with other cells in its rows, whatever is between the tables. */
const rewriteRows = (block: string, cellsOf: (name: string, words: readonly string[]) => readonly string[]): string =>
  block.replaceAll(/^\| `[^`]+` \|.*\|$/gm, (line) => {
    const [[name = "", cells = []] = []] = readRows(line);
    return `| ${[code(name), ...cellsOf(name, cells)].join(" | ")} |`.replaceAll("|  |", "| |");
  });

function describeEvent({ requested, patienceMs, fails }: ReasonFacts): string {
  const after = patienceMs > 0 ? ` after ${patienceMs / 1000} s` : "";
  return `${requested ? "Normal" : "Warning"}${after}${fails ? "; the group fails" : ""}`;
}

function describePhase({ phase, blocksAfterMs }: ReasonFacts): string {
  return code(phase) + (blocksAfterMs === undefined ? "" : `; \`Blocked\` after ${blocksAfterMs / 60_000} min`);
}

function tableOfReasons(written: Written, isScaling: boolean): string {
  const rows = Object.entries(REASONS).filter(
    ([, { scaling }]: [string, ReasonFacts]) => (scaling === true) === isScaling,
  );
  match(
    written,
    rows.map(([name]) => name),
  );
  return table(
    ["reason", "phase", "Event", "meaning", "what to do"],
    rows.map(([name, facts]) => [code(name), describePhase(facts), describeEvent(facts), ...wordsOf(written, name, 2)]),
  );
}

/** The Events that the code drafts, with their types. */
function draftedEvents(): Map<string, Set<string>> {
  const sources = readSources("functions", "reconciler");
  const found = [
    ...sources.matchAll(/\b(normal|warning)\([^")]*,\s+"(\w+)"/g),
    ...sources.matchAll(/type: "(\w+)",\s+reason: "(\w+)"/g),
  ];
  const events = new Map<string, Set<string>>();
  for (const [, type = "", name = ""] of found)
    events.set(name, (events.get(name) ?? new Set()).add(`${type.charAt(0).toUpperCase()}${type.slice(1)}`));
  return events;
}

function tableOfEvents(written: Written, block: string): string {
  const drafted = draftedEvents();
  match(written, drafted.keys());
  return rewriteRows(block, (name, [, ...words]) => [[...(drafted.get(name) ?? [])].toSorted().join(", "), ...words]);
}

/** Labels and annotations that the code names; others' are in the page, too. */
function tablesOfAnnotations(written: Written, block: string): string {
  const sources = readSources("functions", "reconciler", "infra", "test/drill");
  const own = [...sources.matchAll(/"((?:zonewise|grafana\.com)\/[\w-]+)"/g)].map(([, name = ""]) => name);
  const known = new Set([...Object.values(LABELS), ...Object.values(ANNOTATIONS), ...own]);
  match(new Map([...written].filter(([name]) => known.has(name) || !sources.includes(`"${name}"`))), known);
  return block;
}

const tableOfVariables = (): string =>
  table(
    ["variable", "default", "meaning; what is allowed"],
    VARIABLE_ROWS.map(([name, { default: value, fallback, schema, meaning, allowed }]) => {
      const unset = safeParse(schema, undefined).success ? "" : "required";
      const stated = value !== undefined ? code(value) : fallback !== undefined ? `that of ${code(fallback)}` : unset;
      return [code(name), stated, `${meaning}; ${allowed}`];
    }),
  );

function tableOfFlags(): string {
  const variables = new Map<string, { readonly default?: string }>(VARIABLE_ROWS);
  return table(
    ["flag", "its default", "variable", "our default"],
    ORIGINAL_FLAGS.map(([flag, theirs, none]) => {
      const name = variableOf(flag);
      const row = variables.get(name);
      if ((row === undefined) !== (none !== undefined))
        throw new Error(`flags.ts: ${flag} has a variable, or a reason`);
      const shown = theirs.startsWith("`") ? theirs : codeOrNone(theirs);
      return [code(`-${flag}`), shown, none ?? code(name), codeOrNone(row?.default ?? "")];
    }),
  );
}

const metrics: readonly MetricRow[] = Object.values(METRICS);
const tableOfMetrics = (): string =>
  table(
    ["metric", "type", "labels", "meaning"],
    metrics.map(({ name, type, labels, help }) => [code(name), type, labels.map(code).join(", "), help]),
  );

const listOfKept = (): string =>
  metrics
    .filter(({ kept, name }) => kept !== undefined || name === METRICS.lastTick.name)
    .map(({ name }) => `- ${code(name)}`)
    .join("\n");

/** The specification's rules: the code of each is that of the verdict, by the metric's reason in its last cell. */
function tableOfDecisions(_: Written, block: string): string {
  const RULE = /^(?<before>\|.*\|) \d+(?<more>[^|]*\|[^|]*)\| `(?<metric>[\w-]+)` \|$/gm;
  const codes = new Map<string, number>(Object.values(VERDICTS).map((facts) => [facts.metric, facts.code]));
  match(new Map([...block.matchAll(RULE)].map(({ groups }) => [groups?.["metric"] ?? "", []])), codes.keys());
  return block.replaceAll(
    RULE,
    (_line, before: string, more: string, metric: string) => `${before} ${codes.get(metric)}${more}| ${code(metric)} |`,
  );
}

const tableOfVerdicts = (): string =>
  table(
    ["`status`", "`reason`"],
    [...new Set(Object.values(VERDICTS).map((facts) => facts.code))].toSorted().map((status) => {
      const facts = Object.values(VERDICTS).filter((one) => one.code === status);
      return [String(status), facts.map(({ metric }) => code(metric)).join(", ")];
    }),
  );

function tablesOfValues(written: Written, block: string): string {
  const values = leavesOf(parse(readPage("infra/helm/zonewise/values.yaml")));
  const refused = refusalsIn(JSON.parse(readPage("infra/helm/zonewise/values.schema.json")) as object);
  match(written, [...values.keys(), ...refused.keys()]);
  return rewriteRows(block, (name, words) => {
    const text = (words.at(-1) ?? "").replace(/(?:^|\. )refused: .*/, "");
    const value = values.has(name) ? code(JSON.stringify(values.get(name))) : "not set";
    return [value, [text, refused.get(name) ?? ""].filter((one) => one !== "").join(". ")];
  });
}

const tableOfCommands = (): string =>
  table(
    ["command", "what it does", "exit codes"],
    COMMANDS.map(({ name, arguments: words, summary, exits }) => [
      code(`${name} ${words}`.trim()),
      summary,
      Object.entries(exits)
        .map(([exit, meaning]) => `${exit}: ${meaning}`)
        .join("; "),
    ]),
  );

const tableOfCommandFlags = (): string =>
  table(
    ["flag", "meaning"],
    [
      ...COMMANDS.flatMap(({ name, flags }) => flags.map((one) => [code(`${name} ${one.flag}`), one.summary])),
      ...GLOBAL_FLAGS.map(({ flag, summary }) => [code(flag), summary]),
    ],
  );

function tableOfChecks(written: Written, block: string): string {
  const levels = new Map<string, Set<string>>();
  for (const { check, level } of CHECKS) levels.set(check, (levels.get(check) ?? new Set()).add(level));
  match(written, levels.keys());
  return rewriteRows(block, (name, [, ...words]) => [[...(levels.get(name) ?? [])].join(", "), ...words]);
}

interface Configuration {
  readonly kind?: string;
  readonly webhooks?: readonly {
    readonly clientConfig: { readonly service: { readonly path: string } };
    readonly failurePolicy: string;
    readonly sideEffects: string;
    readonly rules: readonly { readonly operations: readonly string[]; readonly resources: readonly string[] }[];
  }[];
}

function tableOfWebhooks(): string {
  const files = globSync("infra/manifests/{webhooks,pod-deletion-webhook}/*.yaml", { cwd: ROOT }).toSorted();
  const rows = files.flatMap((file) => {
    const { kind = "", webhooks = [] } = parse(readPage(file)) as Configuration;
    return webhooks.map(({ clientConfig, failurePolicy, rules }) => {
      const asked = new Set(rules.map((rule) => `${rule.operations.join(", ")} of ${rule.resources.join(", ")}`));
      const type = kind.startsWith("Mutating") ? "mutating" : "validating";
      return [code(clientConfig.service.path), type, [...asked].join("; "), failurePolicy];
    });
  });
  return table(["path", "type", "registered for", "while nothing answers"], rows);
}

function tableOfTargets(written: Written, block: string): string {
  match(written, Object.keys(targets));
  return block;
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly default?: unknown;
  readonly description?: string;
}

/** The fields below a schema, down to lists; `window.cron`. */
function fieldsOf({ properties = {} }: Schema, path = ""): [string, Schema][] {
  return Object.entries(properties).flatMap(([key, field]) => [
    [path + key, field] as [string, Schema],
    ...fieldsOf(field, `${path}${key}.`),
  ]);
}

/** What the page says of a field, unless its description in the definition says it. */
function tableOfPolicy(written: Written): string {
  const file = readPage("infra/manifests/node-updates/crds/nodeupdatepolicies.yaml");
  const { spec } = parse(file) as { spec: { versions: [{ schema: { openAPIV3Schema: Schema } }] } };
  const fields = fieldsOf(spec.versions[0].schema.openAPIV3Schema.properties?.["spec"] ?? {});
  const rows = fields.map(([path, { default: value, description = "" }]) => [
    code(path),
    value === undefined ? "" : code(JSON.stringify(value)),
    description.replace(/\.$/, "") || (written.get(path)?.[1] ?? ""),
  ]);
  return table(
    ["field", "default", "meaning"],
    rows.filter(([, value, text]) => value !== "" || text !== ""),
  );
}

function tableOfNodes(written: Written, heads: readonly string[], reasons: readonly string[]): string {
  match(written, reasons);
  return table(
    heads,
    reasons.map((one) => [code(one), ...wordsOf(written, one, heads.length - 1)]),
  );
}

interface Role {
  readonly kind?: string;
  readonly metadata?: { readonly name: string };
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly { readonly name: string }[];
  readonly rules?: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly resourceNames?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

/** A table for each role of the manifests. */
function tablesOfRights(): string {
  const files = globSync("infra/manifests/**/*.yaml", { cwd: ROOT }).toSorted();
  const roles = files.flatMap((file) =>
    parseAllDocuments(readPage(file)).map((one) => ({ file, ...((one.toJS() ?? {}) as Role) })),
  );
  const boundTo = (kind: string, name: string | undefined): string => {
    const bindings = roles.filter(({ roleRef }) => roleRef?.kind === kind && roleRef.name === name);
    return [...new Set(bindings.flatMap(({ subjects = [] }) => subjects.map((one) => code(one.name))))].join(", ");
  };
  return roles
    .flatMap(({ file, kind = "", metadata, rules = [] }) => {
      if (!/^(?:Cluster)?Role$/.test(kind) || rules.length === 0) return [];
      const rows = rules.map(({ apiGroups, resources, resourceNames = [], verbs }) => [
        apiGroups.map((group) => group || "core").join(", "),
        resources.join(", "),
        resourceNames.map(code).join(", "),
        verbs.join(", "),
      ]);
      const accounts = boundTo(kind, metadata?.name);
      const holders = accounts === "" ? "" : `, for the ServiceAccount ${accounts}`;
      const title = `## ${kind} ${metadata?.name}\n\n\`${file}\`${holders}`;
      return [`${title}\n\n${table(["API group", "resources", "only these names", "verbs"], rows)}`];
    })
    .join("\n\n");
}

/** Each block of the pages, by its name: made of the code, and of what is written in its rows, or in all of it. */
const BLOCKS: Readonly<Record<string, (written: Written, block: string) => string>> = {
  reasons: (written) => tableOfReasons(written, false),
  "reasons-scaling": (written) => tableOfReasons(written, true),
  events: tableOfEvents,
  annotations: tablesOfAnnotations,
  variables: tableOfVariables,
  flags: tableOfFlags,
  metrics: tableOfMetrics,
  "metrics-kept": listOfKept,
  verdicts: tableOfVerdicts,
  decisions: tableOfDecisions,
  "helm-values": tablesOfValues,
  commands: tableOfCommands,
  "command-flags": tableOfCommandFlags,
  "doctor-checks": tableOfChecks,
  webhooks: tableOfWebhooks,
  targets: tableOfTargets,
  rights: tablesOfRights,
  "node-policy": tableOfPolicy,
  "node-waits": (written) => tableOfNodes(written, ["reason", "meaning"], SKIP_REASONS),
  "node-ends": (written) => tableOfNodes(written, ["reason", "meaning", "what follows"], FAILURE_REASONS),
  "drill-promises": () =>
    table(
      ["promised", "which means"],
      PROMISES.map(({ promise, means }) => [code(promise), means]),
    ),
  "drill-stages": () =>
    table(
      ["stage", "what", "at most"],
      Object.entries(STAGES).map(([name, { says, limitMs }]) => [code(name), says, shortDuration(limitMs)]),
    ),
};

/** The alert's reasons are those that a person must end and that do not fail the group, which has an alert of its own. */
export const renderAlert = (rules: string): string =>
  rules.replace(/(?<=zonewise_group_held\{reason=~")[^"]*/, () =>
    Object.entries(REASONS)
      .flatMap(([reason, { phase, fails }]: [string, ReasonFacts]) => (phase === "Blocked" && !fails ? [reason] : []))
      .join("|"),
  );

const BLOCK = /<!-- generated: (?<name>[\w-]+) -->\n(?<block>[^]*?)<!-- end -->/g;

/** A page with its blocks as they are generated. */
export const renderBlocks = (page: string): string =>
  page.replaceAll(BLOCK, (_, name: string, block: string) => {
    const render = BLOCKS[name];
    if (render === undefined) throw new Error(`there is no block ${name}; there are ${Object.keys(BLOCKS).join(", ")}`);
    const written = block.trim();
    try {
      return `<!-- generated: ${name} -->\n\n${render(readRows(written), written)}\n\n<!-- end -->`;
    } catch (error) {
      throw new Error(`the block ${name} cannot be generated: ${messageOf(error)}`, { cause: error });
    }
  });
