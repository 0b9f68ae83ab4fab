/**
 * Judges the expressions of gates: what is admitted of them (§14.12), and what is asked for them (§14.10).
 *
 *   written -- placeholders stand where they can, and for some pods --> admitted --> asked with their values
 *           -- no server could ever answer it ----------------------> refused, and never asked
 */
import { dig, type Fields, fieldsOf, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { GROUP, NAMESPACE } from "../names.ts";
import type { Review } from "../network.ts";
import type { Shape } from "../shape.ts";
import type { History } from "./history.ts";
import { BASELINE_CHECK, GATE, GATE_CHECK, gateObject, NODES_CHECK, PHASED_CHECK } from "./objects.ts";
import type { Told } from "./prometheus.ts";

/** A placeholder that there is not, and places where none can stand: the definition or the webhook refuses them. */
export const IMPOSSIBLE = [
  `${GATE_CHECK}{group="$(grupp)"}`,
  `${GATE_CHECK} unless $(group)`,
  `${GATE_CHECK}{pod="$(candidate_pods)"}`,
  `${GATE_CHECK} offset 5$(range)`,
] as const;
/** No PromQL, as far as we know: its server may know more. */
export const FOREIGN = [`${GATE_CHECK} default 0`, `${GATE_CHECK} keep_metric_names`] as const;
/** They can be asked at each point of a rollout. */
export const FILLED = [
  `${GATE_CHECK}{pod=~"$(candidate_pods)",namespace="$(namespace)"}`,
  `${GATE_CHECK}{pod!~"$(other_pods)",group=~"$(group)"} offset $(range)`,
] as const;
/** A baseline that has pods only once a zone has begun. */
export const EMPTY = `${BASELINE_CHECK}{pod=~"$(candidate_pods)"}`;
/** No value of a label. */
export const NO_GROUP = "a b";

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);

const LABEL = /^[A-Za-z0-9](?:[-_.A-Za-z0-9]*[A-Za-z0-9])?$/;
const PLACEHOLDER = /\$\(([^()]*)\)/;
/** By its name what is asked in place of a placeholder, a sample's where it is tried; in a regular expression a dot is written `[.]`. */
const valuesFor = (group: string, isRegex: boolean): Readonly<Record<string, string>> => ({
  namespace: escape(NAMESPACE),
  group: escape(isRegex ? group.replaceAll(".", "[.]") : group),
  zone: `(?:${escape(GROUP)}-)?zone-[a-d]`,
  candidate_pods: '(?<candidates>[^"]*)',
  other_pods: '(?<others>[^"]*)',
  range: String.raw`\d+s`,
});
/** The points at which a placeholder stands for no pods: there is nothing to compare. */
const WITHOUT_PODS = [
  ["BeforeFirstZone", "$(candidate_pods)"],
  ["AfterLastZone", "$(other_pods)"],
] as const;
/** As long as a process stands still, and its calls are on their way. */
const DECIDED_MS = 150_000;

export interface ExpressionOptions {
  readonly shape: Shape;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** Versions of the gate and of the zones, by their names. */
  readonly history: History;
}

const exprsOf = (spec: unknown): readonly string[] =>
  [...listOf(dig(spec, "checks")), dig(spec, "check")].flatMap((check) =>
    [dig(check, "query", "expr"), dig(check, "baseline", "expr")].flatMap((expr) => textOf(expr) ?? []),
  );

/** What no server can ever answer, in words. */
function impossibleIn(spec: Fields): readonly string[] {
  const exprs = exprsOf(spec);
  const group = textOf(spec["group"]) ?? "";
  const empty = WITHOUT_PODS.filter(
    ([point, pods]) =>
      listOf(spec["when"]).includes(point) &&
      listOf(spec["checks"]).some(
        (check) => dig(check, "baseline") && exprsOf({ check }).some((expr) => expr.includes(pods)),
      ),
  );
  return [
    ...IMPOSSIBLE.filter((expr) => exprs.includes(expr)),
    ...(!LABEL.test(group) && exprs.some((expr) => expr.includes("$(group)")) ? [`the group ${group}`] : []),
    ...empty.map(([point, pods]) => `a comparison with ${pods} at ${point}`),
  ];
}

function patternOf(expr: string, group: string): RegExp {
  const parts = expr.split(PLACEHOLDER);
  const texts = parts.map((part, i) => {
    const isRegex = parts[i - 1]?.endsWith('~"') === true;
    return i % 2 === 0 ? escape(part) : (valuesFor(group, isRegex)[part] ?? "(?!)");
  });
  return new RegExp(`^${texts.join("")}$`);
}

/** Calls `violated` with what happened, in words. */
export function createExpressionSafety({ shape, violated, now, history }: ExpressionOptions) {
  /** By "group expression". */
  const patterns = new Map<string, RegExp>();
  /** By what was asked. */
  const answers = new Map<string, Told[]>();
  const write = (spec: unknown): void => {
    const group = textOf(dig(spec, "group")) ?? "";
    for (const expr of exprsOf(spec))
      if (!IMPOSSIBLE.some((one) => one === expr)) patterns.set(`${group} ${expr}`, patternOf(expr, group));
  };
  if (shape.gate) write(gateObject(shape.gate)["spec"]);
  if (shape.phased) write({ check: { query: { expr: PHASED_CHECK } } });
  if (shape.nodes?.check) write({ check: { query: { expr: NODES_CHECK } } });

  /** A zone that has kept the revision of the last rollout is none of this one's, whatever it is about. */
  function isLeftOut(zone: string): boolean {
    const gates = history.since(GATE, now() - DECIDED_MS);
    const sets = history.since(zone, now() - DECIDED_MS);
    const recordOf = (gate: KubeObject | undefined): Fields =>
      fieldsOf(listOf(dig(gate, "status", "zones")).find((one) => dig(one, "name") === zone));
    return gates.every((gate) => {
      const { began, settledRevision } = recordOf(gate);
      const isKept = sets.every((set) => dig(set, "status", "updateRevision") === settledRevision);
      return settledRevision !== undefined && began === undefined && isKept && sets.length > 0;
    });
  }

  function judge({ groups = {} }: RegExpExecArray, expr: string): void {
    for (const [name, pods] of Object.entries(groups))
      if (pods !== undefined && new RegExp(`^(?:${pods})$`).test(""))
        violated(`Prometheus is asked for ${name} that have no name: ${expr}`);
    const left = shape.zones.find((zone) => groups["candidates"]?.includes(`${zone}-`) && isLeftOut(zone));
    if (left !== undefined) violated(`Prometheus is asked for ${left}, which the rollout has not begun: ${expr}`);
  }

  return {
    /** Somebody has written an object with checks. */
    onWritten: ({ spec }: KubeObject & { readonly spec?: unknown }): void => write(spec),
    onAnswer(told: Told): void {
      const { expr } = told;
      answers.set(expr, [...(answers.get(expr) ?? []), told]);
      const matches = [...patterns.values()].map((pattern) => pattern.exec(expr)).filter((match) => match !== null);
      if (patterns.size > 0 && matches.length === 0)
        violated(`Prometheus is asked what nobody has written so: ${expr}`);
      for (const match of matches) judge(match, expr);
    },
    onReview({ path, sent, status, answer }: Review): void {
      if (!path.startsWith("/validate-sts-plus") || status !== 200) return;
      const request = dig(JSON.parse(sent), "request");
      if (dig(request, "resource", "resource") !== "rolloutgates") return;
      const [object, old] = ["object", "oldObject"].map((field) => fieldsOf(dig(request, field, "spec")));
      const known = impossibleIn(old ?? {});
      const what = impossibleIn(object ?? {}).find((one) => !known.includes(one));
      const isAllowed = dig(JSON.parse(answer), "response", "allowed") === true;
      if (isAllowed && what !== undefined) violated(`a gate is admitted that can never be answered, by ${what}`);
      const exprs = exprsOf(object);
      if (!isAllowed && exprs.length > 0 && !exprs.some((expr) => PLACEHOLDER.test(expr)))
        violated(`a gate is refused for ${exprs.join()}, which its server may know`);
    },
    /** All answers to a written expression. */
    toldOf(written: string): readonly Told[] {
      if (!PLACEHOLDER.test(written)) return answers.get(written) ?? [];
      const pattern = patterns.get(`${GROUP} ${written}`) ?? patternOf(written, GROUP);
      return [...answers]
        .filter(([expr]) => pattern.test(expr))
        .flatMap(([, told]) => told)
        .toSorted((a, b) => a.at - b.at);
    },
  };
}
