/** The rules in the definition of gates: CEL, types and bounds, as the API server knows them. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { readQueryTarget } from "../../../infra/prometheus/target.ts";
import type { Admin } from "../stage/client.ts";
import { ownDefinition } from "../stage/own-definition.ts";

const query = { expr: "up", url: "http://prometheus" };
const check = { name: "errors", query, successWhen: "NoData" };
const withCheck = (more: object): object => ({ checks: [{ ...check, ...more }] });
const withQuery = (more: object): object => withCheck({ query: { ...query, ...more } });

const withBaseline = (more: object): object =>
  withCheck({ successWhen: "WithinBaseline", baseline: { expr: "up", ...more } });

const REFUSED: readonly (readonly [spec: object, words: RegExp])[] = [
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
  [withQuery({ expr: 'up{zone="$(zones)"}' }), /query\.expr: .*a placeholder \$\(\.\.\.\) is one of \$\(namespace\), /],
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
];

const ACCEPTED: readonly object[] = [
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
  ...["prom:9000/xx", "10.0.0.1:9090", "[::1]:9090", "https://user:p%40ss@prom/x", "HTTP://prom", "localhost:9090"].map(
    (url) => withQuery({ url }),
  ),
];

describe("the definition of gates", () => {
  let admin: Admin;
  const definition = ownDefinition({ plural: "rolloutgates", version: "v1", group: "zonewise.dev" });
  const { group, path } = definition;
  before(async () => void (admin = await definition.create()));
  after(() => definition.remove());

  const create = (spec: object): Promise<{ spec: object }> =>
    admin.call("POST", `${path}?dryRun=All`, {
      apiVersion: `${group}/v1`,
      kind: "RolloutGate",
      metadata: { name: "gate" },
      spec: { group: "ingester", checks: [check], ...spec },
    });

  for (const [spec, words] of REFUSED)
    it(`refuses ${JSON.stringify(spec).slice(0, 120)}`, async () => {
      const answer = await create(spec).then(() => "taken", String);
      assert.match(answer, /: 422 /);
      assert.match(answer, words);
    });

  for (const spec of ACCEPTED)
    it(`accepts ${JSON.stringify(spec).slice(0, 120)}`, async () => void (await create(spec)));

  it("agrees with the client on URLs", () => {
    const urlsIn = (specs: readonly object[]) =>
      [...JSON.stringify(specs).matchAll(/"url":("(?:\\.|[^"])*")/g)].map(([, url = ""]) => JSON.parse(url) as string);
    const ofUrls = REFUSED.filter(([, words]) => /must (?:begin|have a host|not)/.test(words.source)).map(
      ([spec]) => spec,
    );
    for (const url of urlsIn(ofUrls)) assert.ok(readQueryTarget(url).problem !== undefined, url);
    for (const url of urlsIn(ACCEPTED)) assert.equal(readQueryTarget(url).problem, undefined, url);
  });

  it("fills in the defaults", async () => {
    const { spec } = await create({});
    const filled = { ...check, initialDelaySeconds: 60, periodSeconds: 60, successThreshold: 3 };
    assert.deepEqual(spec, {
      group: "ingester",
      when: ["BetweenZones"],
      onError: "Wait",
      mode: "Enforce",
      soakSeconds: 0,
      checks: [filled],
    });
  });
});
