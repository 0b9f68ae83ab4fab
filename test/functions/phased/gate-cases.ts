/** Gates, and what admission says of them: one table for the handler, the embedded cluster and a real one (§14.12). */
import assert from "node:assert/strict";
import type { Client } from "../../cluster/conformance/client.ts";

const MERGE = "application/merge-patch+json";

interface GateCase {
  readonly name: string;
  readonly spec: object;
  /** The spec of `STORED` becomes this one. */
  readonly isUpdate?: true;
  readonly refused?: RegExp;
  readonly warned?: RegExp;
}

const url = "http://prometheus:9090";
const gateOf = (check: object, more: object = {}): object => ({
  group: "ingester",
  checks: [{ name: "errors", query: { expr: "up", url }, successWhen: "NoData", ...check }],
  ...more,
});
const asking = (expr: string, more?: object): object => gateOf({ query: { expr, url } }, more);
const comparing = (candidate: string, baseline: string, more?: object): object =>
  gateOf(
    { query: { expr: candidate, url }, successWhen: "WithinBaseline", baseline: { expr: baseline, maxRatio: "2" } },
    more,
  );

const CANDIDATE = 'sum(errors{pod=~"$(candidate_pods)"})';
const OTHERS = 'sum(errors{pod=~"$(other_pods)"})';
const NAMELESS = asking('up{a="$(group)"}', { group: 'a"} or vector(1) #' });
const UNFILLED = asking("sum($(other_pods))");

export const GATE_CASES: readonly GateCase[] = [
  { name: "a condition", spec: asking("up == 0") },
  { name: "a comparison of the updated pods with the others", spec: comparing(CANDIDATE, OTHERS) },
  { name: "a gate that only soaks", spec: { group: "ingester", soakSeconds: 60 } },
  {
    name: "every placeholder in its place",
    spec: asking(
      'rate(x{n="$(namespace)", g="$(group)", z="$(zone)", pod=~"$(candidate_pods)|$(other_pods)"}[$(range)]) > 1',
    ),
  },
  {
    name: "MetricsQL",
    spec: asking('errors{group="$(group)"} default 0'),
  },
  { name: "what is no PromQL, as Prometheus says so", spec: asking("() ".repeat(1365)) },
  {
    name: "a long expression",
    spec: asking("x".repeat(4097)),
    refused: /spec\.checks\[0\]\.query\.expr: Too long: may not be more than 4096 bytes/,
  },
  {
    name: "a placeholder where none can stand, in the query",
    spec: UNFILLED,
    refused: /spec\.checks: check errors: query\.expr: \$\(other_pods\) must stand in the quotes after =~ or !~/,
  },
  {
    name: "one where none can stand, in the baseline",
    spec: comparing(CANDIDATE, 'sum(errors{pod="$(other_pods)"})'),
    refused: /check errors: baseline\.expr: \$\(other_pods\) must stand in the quotes after =~ or !~/,
  },
  {
    name: "a range that is a part of a duration",
    spec: asking("rate(x[5$(range)])"),
    refused: /\$\(range\) must stand where a duration does/,
  },
  {
    name: "a name that ends the string that it stands in",
    spec: NAMELESS,
    refused: /\$\(group\) does not stand for a valid object name/,
  },
  {
    name: "a zone after the last one",
    spec: asking('up{zone="$(zone)"}', { when: ["BetweenZones", "AfterLastZone"] }),
    refused: /\$\(zone\) is not a placeholder here/,
  },
  {
    name: "a comparison with no pods",
    spec: comparing(CANDIDATE, OTHERS, { when: ["AfterLastZone"] }),
    refused: /spec\.checks: check errors: \$\(other_pods\) stands for no pods at AfterLastZone/,
  },
  {
    name: "an invalid gate that observes from now on",
    isUpdate: true,
    spec: { ...UNFILLED, mode: "Observe" },
    warned: /\$\(other_pods\) must stand .*it stays in force/,
  },
  {
    name: "an invalid gate with another fault",
    isUpdate: true,
    spec: asking("rate(x[5$(range)])"),
    refused:
      /denied the request: spec\.checks: check errors: query\.expr: \$\(range\) must stand where a duration does/,
  },
  { name: "an invalid gate that is mended", isUpdate: true, spec: asking("up == 0") },
];

interface Said {
  readonly status: number;
  readonly message: string;
  readonly warning: string;
}

/** To be made while nothing judges it. */
export const STORED = {
  apiVersion: "zonewise.dev/v1",
  kind: "RolloutGate",
  metadata: { name: "stored" },
  spec: UNFILLED,
};

/** Asks what a create of the gate, or an update of `STORED`, would be answered. */
export async function writeGate({ spec, isUpdate }: GateCase, client: Client, namespace: string): Promise<Said> {
  const path = `/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgates`;
  const answer = await client.call(
    isUpdate
      ? { method: "PATCH", path: `${path}/stored?dryRun=All`, type: MERGE, body: { spec } }
      : { method: "POST", path: `${path}?dryRun=All`, body: { ...STORED, metadata: { name: "new" }, spec } },
  );
  const { message = "" } = answer.body as { message?: string };
  return { status: answer.status, message, warning: String(answer.headers["warning"] ?? "") };
}

/** Fails unless admission said what the case says. */
export function assertSaid({ name, refused, warned, isUpdate }: GateCase, { status, message, warning }: Said): void {
  assert.equal(status, refused ? 422 : isUpdate ? 200 : 201, `${name}: ${message}`);
  if (refused) assert.match(message, refused, name);
  if (warned) assert.match(warning, warned, name);
  else assert.equal(warning, "", name);
}
