/** The rules in our definitions, on the embedded cluster; test/cluster/install/definitions.cluster.ts plays them on a real one. */
import assert from "node:assert/strict";
import { after, it } from "node:test";
import { readQueryTarget } from "../../infra/prometheus/target.ts";
import { parseBudget } from "../../reconciler/budget/zpdb.ts";
import { connect } from "../cluster/conformance/client.ts";
import { post } from "../cluster/conformance/requests.ts";
import { readDefinition } from "../cluster/stage/definitions.ts";
import { startEmulator } from "../emulator/index.ts";
import { DEFINITION_RULES, describeRules, type Rules } from "./definitions.ts";

const emulator = await startEmulator({ controllers: false });
const client = connect(emulator.kubeconfig());
after(async () => (client.close(), await emulator.stop()));

for (const rules of DEFINITION_RULES) {
  const { plural, group, version, isClusterWide } = rules;
  await client.call(post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", await readDefinition(plural)));
  const path = `/apis/${group}/${version}/${isClusterWide ? "" : "namespaces/default/"}${plural}`;
  describeRules(rules, () => ({ client, group, path }));
}

const rulesOf = (kind: string): Rules => DEFINITION_RULES.find((one) => one.kind === kind) ?? assert.fail(kind);

it("the client of Prometheus agrees on URLs", () => {
  const { refused, accepted } = rulesOf("RolloutGate");
  const urlsIn = (specs: readonly object[]) =>
    [...JSON.stringify(specs).matchAll(/"url":("(?:\\.|[^"])*")/g)].map(([, url = ""]) => JSON.parse(url) as string);
  const ofUrls = refused.filter(([, words]) => /must (?:begin|have a host|not)/.test(String(words)));
  for (const url of urlsIn(ofUrls.map(([spec]) => spec))) assert.ok(readQueryTarget(url).problem !== undefined, url);
  for (const url of urlsIn(accepted)) assert.equal(readQueryTarget(url).problem, undefined, url);
});

it("the webhook accepts the budgets that their definition accepts", () => {
  const { kind, spec, accepted } = rulesOf("ZoneAwarePodDisruptionBudget");
  for (const more of accepted)
    assert.ok(!("problem" in parseBudget({ kind, metadata: { name: "one" }, spec: { ...spec, ...more } })));
});
