/** The generated tables of the documentation: each is made of a table of the code and of the texts beside this file. */
import { globSync } from "node:fs";
import { parse, parseAllDocuments } from "yaml";
import { safeParse } from "zod/mini";
import * as targets from "../../../functions/index.ts";
import { COMMANDS } from "../../../cli/program.ts";
import { GLOBAL_FLAGS } from "../../../cli/flags.ts";
import { VARIABLE_ROWS } from "../../../infra/config/variables.ts";
import { shortDuration } from "../../../infra/duration.ts";
import type { MetricRow } from "../../../infra/metrics/registry.ts";
import { METRICS } from "../../../infra/metrics/tables/metric-table.ts";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { ANNOTATIONS, LABELS } from "../../../reconciler/model/annotations.ts";
import { type ReasonFacts, REASONS } from "../../../reconciler/model/decision.ts";
import { FAILURE_REASONS, SKIP_REASONS } from "../../../reconciler/nodes/snapshot.ts";
import { PROMISES } from "../../drill/judge.ts";
import { STAGES } from "../../drill/plan.ts";
import { readPage, readSources, ROOT } from "../pages.ts";
import { ANNOTATION_TEXTS } from "./annotations.ts";
import { DOCTOR_TEXTS } from "./doctor.ts";
import { ORIGINAL_FLAGS, variableOf } from "./flags.ts";
import { leavesOf, refusalsIn } from "./chart.ts";
import { CHECKS } from "../../../cli/decide/doctor/checks.ts";
import { VALUE_TEXTS } from "./helm-values.ts";
import { FAILURE_TEXTS, POLICY_TEXTS, SKIP_TEXTS } from "./nodes.ts";
import { EVENT_TEXTS, REASON_TEXTS } from "./reasons.ts";
import { TARGET_TEXTS } from "./targets.ts";

const code = (text: string): string => `\`${text}\``;
const codeOrNone = (text: string): string => (text === "" ? "" : code(text));
const table = (heads: readonly string[], rows: readonly (readonly string[])[]): string =>
  [heads, heads.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`.replaceAll("|  |", "| |"))
    .join("\n");

/** Throws unless the texts are about these names and no others: a text that is missing is named. */
function match(what: string, names: Iterable<string>, texts: Iterable<string>): void {
  const [wanted, written] = [new Set(names), new Set(texts)];
  const missing = [...wanted].filter((name) => !written.has(name));
  const extra = [...written].filter((name) => !wanted.has(name));
  if (missing.length + extra.length > 0)
    throw new Error(
      `test/docs/reference/${what}.ts: write ${missing.join(", ") || "nothing"}; remove ${extra.join(", ") || "nothing"}`,
    );
}

function describeEvent({ requested, patienceMs, fails }: ReasonFacts): string {
  const after = patienceMs > 0 ? ` after ${patienceMs / 1000} s` : "";
  return `${requested ? "Normal" : "Warning"}${after}${fails ? "; the group fails" : ""}`;
}

function describePhase({ phase, blocksAfterMs }: ReasonFacts): string {
  return code(phase) + (blocksAfterMs === undefined ? "" : `; \`Blocked\` after ${blocksAfterMs / 60_000} min`);
}

const tableOfReasons = (isScaling: boolean): string =>
  table(
    ["reason", "phase", "Event", "meaning", "what to do"],
    Object.entries(REASONS).flatMap(([name, facts]: [string, ReasonFacts]) => {
      const [meaning, help] = REASON_TEXTS[name as keyof typeof REASONS];
      const row = [code(name), describePhase(facts), describeEvent(facts), meaning, help];
      return (facts.scaling === true) === isScaling ? [row] : [];
    }),
  );

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

function tableOfEvents(): string {
  const drafted = draftedEvents();
  match("reasons", drafted.keys(), Object.keys(EVENT_TEXTS));
  return table(
    ["Event", "type", "on", "meaning"],
    Object.entries(EVENT_TEXTS).map(([name, [on, meaning]]) => [
      code(name),
      [...(drafted.get(name) ?? [])].toSorted().join(", "),
      on,
      meaning,
    ]),
  );
}

function tablesOfAnnotations(): string {
  const names = Object.values(ANNOTATION_TEXTS).flatMap((rows) => rows.map(([name]) => name));
  const sources = readSources("functions", "reconciler", "infra", "test/drill");
  const own = [...sources.matchAll(/"((?:zonewise|grafana\.com)\/[\w-]+)"/g)].map(([, name = ""]) => name);
  const known = new Set([...Object.values(LABELS), ...Object.values(ANNOTATIONS), ...own]);
  match(
    "annotations",
    known,
    names.filter((name) => known.has(name) || !sources.includes(`"${name}"`)),
  );
  return Object.entries(ANNOTATION_TEXTS)
    .map(([title, rows]) => {
      const cells = rows.map(([name, kind, meaning]) => [code(name), kind, meaning]);
      return `## ${title}\n\n${table(["name", "kind", "meaning"], cells)}`;
    })
    .join("\n\n");
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

const tableOfVerdicts = (): string =>
  table(
    ["`status`", "`reason`"],
    [...new Set(Object.values(VERDICTS).map((facts) => facts.code))].toSorted().map((status) => {
      const facts = Object.values(VERDICTS).filter((one) => one.code === status);
      return [String(status), facts.map(({ metric }) => code(metric)).join(", ")];
    }),
  );

function tablesOfValues(): string {
  const values = leavesOf(parse(readPage("infra/helm/zonewise/values.yaml")));
  const refused = refusalsIn(JSON.parse(readPage("infra/helm/zonewise/values.schema.json")) as object);
  const names = Object.values(VALUE_TEXTS).flatMap((section) => Object.keys(section));
  match("helm-values", [...values.keys(), ...refused.keys()], names);
  return Object.entries(VALUE_TEXTS)
    .map(([title, section]) => {
      const rows = Object.entries(section).map(([name, text]) => {
        const value = values.has(name) ? code(JSON.stringify(values.get(name))) : "not set";
        return [code(name), value, [text, refused.get(name) ?? ""].filter((one) => one !== "").join(". ")];
      });
      return `## ${title}\n\n${table(["value", "default", "meaning"], rows)}`;
    })
    .join("\n\n");
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

function tableOfChecks(): string {
  const levels = new Map<string, Set<string>>();
  for (const { check, level } of CHECKS) levels.set(check, (levels.get(check) ?? new Set()).add(level));
  match("doctor", levels.keys(), Object.keys(DOCTOR_TEXTS));
  return table(
    ["check", "level", "what it finds"],
    Object.entries(DOCTOR_TEXTS).map(([name, text]) => [code(name), [...(levels.get(name) ?? [])].join(", "), text]),
  );
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

function tableOfTargets(): string {
  match("targets", Object.keys(targets), Object.keys(TARGET_TEXTS));
  return table(
    ["target", "paths", "what it does", "if it cannot decide"],
    Object.entries(TARGET_TEXTS).map(([name, [paths, does, fault]]) => [code(name), paths, does, fault]),
  );
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

function tableOfPolicy(): string {
  const file = readPage("infra/manifests/node-updates/crds/nodeupdatepolicies.yaml");
  const { spec } = parse(file) as { spec: { versions: [{ schema: { openAPIV3Schema: Schema } }] } };
  const fields = fieldsOf(spec.versions[0].schema.openAPIV3Schema.properties?.["spec"] ?? {});
  const rows = fields.map(([path, { default: value, description = "" }]) => {
    const texts = [POLICY_TEXTS[path] ?? "", description.replace(/\.$/, "")].filter((one) => one !== "");
    return [code(path), value === undefined ? "" : code(JSON.stringify(value)), texts.join(". ")];
  });
  return table(
    ["field", "default", "meaning"],
    rows.filter(([, value, text]) => value !== "" || text !== ""),
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

/** Each block of the pages, by its name. */
export const BLOCKS: Readonly<Record<string, () => string>> = {
  reasons: () => tableOfReasons(false),
  "reasons-scaling": () => tableOfReasons(true),
  events: tableOfEvents,
  annotations: tablesOfAnnotations,
  variables: tableOfVariables,
  flags: tableOfFlags,
  metrics: tableOfMetrics,
  "metrics-kept": listOfKept,
  verdicts: tableOfVerdicts,
  "helm-values": tablesOfValues,
  commands: tableOfCommands,
  "command-flags": tableOfCommandFlags,
  "doctor-checks": tableOfChecks,
  webhooks: tableOfWebhooks,
  targets: tableOfTargets,
  rights: tablesOfRights,
  "node-policy": tableOfPolicy,
  "node-waits": () =>
    table(
      ["reason", "meaning"],
      SKIP_REASONS.map((one) => [code(one), SKIP_TEXTS[one]]),
    ),
  "node-ends": () =>
    table(
      ["reason", "meaning", "what follows"],
      FAILURE_REASONS.map((one) => [code(one), ...FAILURE_TEXTS[one]]),
    ),
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

const BLOCK = /<!-- generated: (?<name>[\w-]+) -->\n[^]*?<!-- end -->/g;

/** A page with its blocks as they are generated. */
export const renderBlocks = (page: string): string =>
  page.replaceAll(BLOCK, (_, name: string) => {
    const render = BLOCKS[name];
    if (render === undefined) throw new Error(`there is no block ${name}; there are ${Object.keys(BLOCKS).join(", ")}`);
    return `<!-- generated: ${name} -->\n\n${render()}\n\n<!-- end -->`;
  });
