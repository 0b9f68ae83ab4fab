/**
 * The rules in the definitions of our kinds: CEL, types and bounds, as an API server knows them without any webhook. One
 * table for the embedded cluster and a real one.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseBudget } from "../../reconciler/budget/zpdb.ts";
import type { Client } from "../cluster/conformance/client.ts";
import type { OwnKind } from "../cluster/stage/definitions.ts";
import { MERGE } from "../cluster/conformance/requests.ts";
import { dig } from "../emulator/objects.ts";

export interface Rules {
  readonly plural: OwnKind;
  readonly kind: string;
  readonly group: string;
  readonly version: string;
  readonly isClusterWide?: true;
  /** The only name that an object may have. */
  readonly name?: string;
  /** What each spec has that does not say otherwise. */
  readonly spec: object;
  /** Specs, and what the API server says of them. */
  readonly refused: readonly (readonly [spec: object, words: RegExp | string])[];
  readonly accepted: readonly object[];
  /** What `spec` becomes. */
  readonly filledIn?: object;
  /** A change of `spec` that is refused. */
  readonly fixed?: readonly [change: object, words: RegExp];
}

const query = { expr: "up", url: "http://prometheus" };
const check = { name: "errors", query, successWhen: "NoData" };
const withCheck = (more: object): object => ({ checks: [{ ...check, ...more }] });
const withQuery = (more: object): object => withCheck({ query: { ...query, ...more } });
const withBaseline = (more: object): object =>
  withCheck({ successWhen: "WithinBaseline", baseline: { expr: "up", ...more } });

const GATES: Rules = {
  plural: "rolloutgates",
  kind: "RolloutGate",
  group: "zonewise.dev",
  version: "v1",
  spec: { group: "ingester", checks: [check] },
  refused: [
    [{ group: "" }, /spec\.group/],
    [{ group: undefined }, /spec\.group: Required/],
    [{ checks: [] }, /spec\.checks/],
    [{ checks: undefined }, /spec\.checks: .*a gate needs checks, or soakSeconds/],
    [{ checks: undefined, soakSeconds: 0 }, /a gate needs checks, or soakSeconds/],
    [{ soakSeconds: -1 }, /spec\.soakSeconds/],
    [withCheck({ successWhen: "WithinBaseline" }), /checks\[0\]\.baseline: .*needs a baseline/],
    [withCheck({ baseline: { expr: "x", maxRatio: "1" } }), /no other has one/],
    [withBaseline({}), /needs maxRatio, minRatio or maxDifference/],
    [withBaseline({ expr: "", maxRatio: "1" }), /baseline\.expr/],
    [withBaseline({ maxRatio: 1.5 }), /baseline\.maxRatio/],
    [withBaseline({ maxDifference: "-1" }), /baseline\.maxDifference/],
    [withBaseline({ maxRatio: "1", at: "Yesterday" }), /Unsupported value/],
    [{ checks: [check, check] }, /Duplicate value/],
    [{ when: ["Sometimes"] }, /Unsupported value/],
    [{ when: [] }, /spec\.when/],
    [{ when: ["BetweenZones", "BetweenZones"] }, /Duplicate value/],
    [{ onError: "Ignore" }, /Unsupported value/],
    [{ mode: "Warn" }, /Unsupported value/],
    [withCheck({ name: "Errors" }), /spec\.checks\[0\]\.name/],
    [withCheck({ successWhen: undefined }), /successWhen: Required/],
    [withCheck({ successThreshold: 0 }), /successThreshold/],
    [withCheck({ failureThreshold: 0 }), /failureThreshold/],
    [withCheck({ periodSeconds: -1 }), /periodSeconds/],
    [withCheck({ initialDelaySeconds: 0.5 }), /initialDelaySeconds/],
    [withQuery({ expr: "" }), /query\.expr/],
    [withQuery({ expr: "x".repeat(4097) }), /query\.expr: Too long: may not be more than 4096 bytes/],
    [
      withQuery({ expr: 'up{zone="$(zones)"}' }),
      /query\.expr: .*a placeholder \$\(\.\.\.\) is one of \$\(namespace\), /,
    ],
    [withQuery({ expr: 'up{a="$()"}' }), /query\.expr: .*a placeholder/],
    [withBaseline({ expr: 'up{a="$(toString)"}', maxRatio: "1" }), /baseline\.expr: .*a placeholder/],
    [withQuery({ secretRef: "a b" }), /secretRef/],
    [withQuery({ caBundle: "x", insecureSkipVerify: true }), /only one of them may be set/],
    ...["ftp://prom", "file:///etc/passwd", "gopher://x"].map(
      (url) => [withQuery({ url }), /must begin with http/] as const,
    ),
    ...["http://", "http:///x", "http://:9090", "/x", "//x", "http://u@/x", ":9090"].map(
      (url) => [withQuery({ url }), /must have a host/] as const,
    ),
    ...["http://\\prom", "http://prom /x", "http://prom\n"].map(
      (url) => [withQuery({ url }), /must not have spaces/] as const,
    ),
  ],
  accepted: [
    {},
    { when: ["BeforeFirstZone", "BetweenZones", "AfterLastZone"], onError: "Proceed", mode: "Observe" },
    withCheck({ initialDelaySeconds: 0, periodSeconds: 0, successThreshold: 1, failureThreshold: 1 }),
    withQuery({ secretRef: "zonewise-prometheus", caBundle: "x" }),
    withQuery({ insecureSkipVerify: true }),
    withQuery({
      expr: 'up{n="$(namespace)",g="$(group)",z="$(zone)",p=~"$(candidate_pods)|$(other_pods)"} offset $(range)',
    }),
    withQuery({ expr: 'up{a=~"b$|$((c))"}' }),
    { checks: undefined, soakSeconds: 600 },
    withBaseline({ maxRatio: "1.5" }),
    withBaseline({ minRatio: "0.9", maxDifference: "0.001", at: "BeforeRollout" }),
    ...[
      "prom:9000/xx",
      "10.0.0.1:9090",
      "[::1]:9090",
      "https://user:p%40ss@prom/x",
      "HTTP://prom",
      "localhost:9090",
    ].map((url) => withQuery({ url })),
  ],
  filledIn: {
    group: "ingester",
    when: ["BetweenZones"],
    onError: "Wait",
    mode: "Enforce",
    soakSeconds: 0,
    checks: [{ ...check, initialDelaySeconds: 60, periodSeconds: 60, successThreshold: 3 }],
  },
};

const asking = (more: object): object => ({ check: { query: { ...query, ...more } } });

const PHASED: Rules = {
  plural: "phasedrollouts",
  kind: "PhasedRollout",
  group: "sts.plus",
  version: "v1alpha1",
  spec: { targetRef: "db", check: { query, initialDelaySeconds: 0 } },
  refused: [
    [asking({ url: "ftp://prom" }), /only http and https are possible/],
    [asking({ url: "http://" }), /the host is missing/],
    [asking({ url: "/prom" }), /the host is missing/],
    [asking({ url: "http://a\\b" }), /neither spaces nor backslashes/],
    [asking({ url: "" }), /at least 1 chars/],
    [asking({ expr: "" }), /at least 1 chars/],
    [{ check: { query, successThreshold: 0 } }, /greater than or equal to 1/],
    [{ check: { query, initialDelaySeconds: -1 } }, /greater than or equal to 0/],
    [asking({ successWhen: "Always" }), /supported values/],
    [{ skipCheck: true, standardRollingUpdate: false }, /another name of skipCheck/],
    [{ check: undefined }, /spec\.check: Required/],
    [{ targetRef: "" }, /at least 1 chars/],
  ],
  accepted: [
    ...["prom:9000/xx", "HTTPS://user:word@prom/x", "http://[::1]:9090"].map((url) => asking({ url })),
    { skipCheck: false, standardRollingUpdate: false },
  ],
  // None of successWhen; a 0 stays.
  filledIn: { targetRef: "db", check: { query, initialDelaySeconds: 0, periodSeconds: 60, successThreshold: 3 } },
  fixed: [{ targetRef: "other" }, /targetRef cannot be changed/],
};

const REGEX = "[a-z\\-]+-zone-[a-z]-([0-9]+)";
const BUDGET_SPEC = { selector: { matchLabels: { app: "cache" } } };

/** What the webhook says of a budget that it refuses. */
function problemOf(spec: object): string {
  const read = parseBudget({ kind: "ZoneAwarePodDisruptionBudget", metadata: { name: "one" }, spec });
  return "problem" in read ? read.problem : assert.fail(`the webhook accepts ${JSON.stringify(spec)}`);
}

/** In the webhook's words, where CEL can say them. */
const inItsWords = (more: object): readonly [object, string] => [
  more,
  problemOf({ ...BUDGET_SPEC, ...more }).replace("invalid value: regex is not valid, got ", ""),
];

/** In the API server's own words, of a type or a bound; the webhook refuses it, too. */
const byType = (more: object): readonly [object, RegExp] => (problemOf({ ...BUDGET_SPEC, ...more }), [more, /./]);

const BUDGETS: Rules = {
  plural: "zoneawarepoddisruptionbudgets",
  kind: "ZoneAwarePodDisruptionBudget",
  group: "rollout-operator.grafana.com",
  version: "v1",
  spec: BUDGET_SPEC,
  refused: [
    ...[
      { maxUnavailable: 1, maxUnavailablePercentage: 10 },
      ...["zone", "(zone", "(a)\\1", "(?=zone)(a)"].map((podNamePartitionRegex) => ({ podNamePartitionRegex })),
      ...["notaduration", "5", "1d", "-5m", "-0.5s"].map((crossZoneEvictionDelay) => ({
        podNamePartitionRegex: REGEX,
        crossZoneEvictionDelay,
      })),
      { crossZoneEvictionDelay: "5m" },
      { podNamePartitionRegex: "", crossZoneEvictionDelay: "+1ns" },
      { maxUnavailablePercentage: 50, podNamePartitionRegex: REGEX },
    ].map(inItsWords),
    ...[
      ...["1", -1, 0.5].map((maxUnavailable) => ({ maxUnavailable })),
      { maxUnavailablePercentage: 101 },
      { podNamePartitionRegex: 1 },
      { podNamePartitionRegex: `(${"a".repeat(1000)})` },
      { podNamePartitionRegex: REGEX, podNameRegexGroup: 0 },
      { crossZoneEvictionDelay: 5 },
      { podNamePartitionRegex: REGEX, crossZoneEvictionDelay: `${"0".repeat(100)}1s` },
      { selector: {} },
      ...[{ a: "b,c=d" }, { "a b": "c" }, { "a/b/c": "d" }, { ["a".repeat(64)]: "d" }].map((matchLabels) => ({
        selector: { matchLabels },
      })),
    ].map(byType),
  ],
  accepted: [
    {},
    { maxUnavailable: 0 },
    { maxUnavailablePercentage: 0, podNamePartitionRegex: REGEX },
    { maxUnavailablePercentage: 100 },
    { podNamePartitionRegex: "" },
    { podNamePartitionRegex: "(a)(b)", podNameRegexGroup: 2 },
    ...["20m", "1h30m", "1.5h", ".5s", "1m0.25s", "10µs", "0", "+0", "-0", "0s", ""].map((crossZoneEvictionDelay) => ({
      podNamePartitionRegex: REGEX,
      crossZoneEvictionDelay,
    })),
    { crossZoneEvictionDelay: "0s" },
    { crossZoneEvictionDelay: "-0h0m" },
    { selector: { matchLabels: {} } },
    { selector: { matchLabels: { "example.com/a.b": "", a: "B_c.d-e" } } },
  ],
};

const POLICIES: Rules = {
  plural: "nodeupdatepolicies",
  kind: "NodeUpdatePolicy",
  group: "zonewise.dev",
  version: "v1",
  isClusterWide: true,
  name: "default",
  spec: {},
  refused: [
    ...[-1, "101%", "many"].map((maxConcurrent) => [{ maxConcurrent }, /maxConcurrent/] as const),
    [{ window: { cron: "0 2 * * *" } }, /window/],
    [{ window: { cron: "* * * * * *", lastStartSeconds: 60, durationSeconds: 60 } }, /window/],
    [{ maxFailed: 0 }, /maxFailed/],
    [{ drain: { onTimeout: "Force" } }, /onTimeout/],
    [{ health: { minReadySeconds: -1 } }, /minReadySeconds/],
  ],
  accepted: [
    {},
    ...[0, "25%", "Unlimited"].map((maxConcurrent) => ({ maxConcurrent })),
    { window: { cron: "* * 2-4 * * Mon-Fri", timeZone: "Europe/Berlin" } },
    { window: { cron: "@daily" } },
  ],
};

export const DEFINITION_RULES: readonly Rules[] = [GATES, PHASED, BUDGETS, POLICIES];

/** Where objects of the kind are written: its definition may be one of its own. */
interface Home {
  readonly client: Pick<Client, "call">;
  readonly group: string;
  readonly path: string;
}

/** Registers the tests of one definition. */
export function describeRules(rules: Rules, home: () => Home): void {
  const { kind, version, spec, refused, accepted, filledIn, fixed, name: only } = rules;
  const create = (home: Home, more: object, { name = only ?? "one", query = "?dryRun=All" } = {}) =>
    home.client.call({
      method: "POST",
      path: `${home.path}${query}`,
      body: { apiVersion: `${home.group}/${version}`, kind, metadata: { name }, spec: { ...spec, ...more } },
    });
  const messageOf = (body: unknown): string => String(dig(body, "message"));

  describe(`the definition of ${kind}`, () => {
    for (const [more, words] of refused)
      it(`refuses ${JSON.stringify(more).slice(0, 120)}`, async () => {
        const { status, body } = await create(home(), more);
        assert.equal(status, 422, messageOf(body));
        if (typeof words === "string") assert.ok(messageOf(body).includes(words), `${messageOf(body)}: ${words}`);
        else assert.match(messageOf(body), words);
      });

    for (const more of accepted)
      it(`accepts ${JSON.stringify(more).slice(0, 120)}`, async () => {
        const { status, body } = await create(home(), more);
        assert.equal(status, 201, messageOf(body));
      });

    if (only !== undefined)
      it(`refuses another name than ${only}`, async () => {
        const { status, body } = await create(home(), {}, { name: "one" });
        assert.equal(status, 422);
        assert.match(messageOf(body), /whose name is default/);
      });

    if (filledIn)
      it("fills in its defaults", async () => assert.deepEqual(dig((await create(home(), {})).body, "spec"), filledIn));

    if (fixed)
      it(`refuses to become ${JSON.stringify(fixed[0])}`, async () => {
        const { client, path } = home();
        await create(home(), {}, { query: "" });
        const change = (to: object) =>
          client.call({ method: "PATCH", path: `${path}/one`, type: MERGE, body: { spec: to } });
        assert.match(messageOf((await change(fixed[0])).body), fixed[1]);
        assert.equal((await change({ skipCheck: true })).status, 200);
      });
  });
}
