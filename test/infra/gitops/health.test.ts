/** What each engine says of our objects by the files that are shipped for it: all say the same. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { engineFile, evaluate, runLua } from "./evaluators.ts";
import { type Case, CASES, type Health, OUTSIDERS, type Target } from "./objects.ts";

/** One test a case: a name as an engine would say it. */
function each(cases: readonly Case[], judge: (object: Target, health: Health) => Promise<void> | void): void {
  for (const [name, object, health] of cases)
    it(`of ${name} is ${health}`, async () => {
      await judge(object, health);
    });
}

describe("the health by Argo CD's Lua", () => {
  const [map] = engineFile("argocd-cm.yaml");
  const scripts = map?.["data"] as Readonly<Record<string, string>>;
  each([...CASES, ...OUTSIDERS], async (object, health) => {
    const key = `resource.customizations.health.${object.apiVersion.split("/")[0]}_${object.kind}`;
    const script = scripts[key] ?? assert.fail(`no ${key}`);
    const said = (await runLua(`function judge() ${script}\nend`, { obj: object }, "return judge()")) as {
      status: string;
      message: string;
    };
    assert.equal(said.status, health);
    assert.equal(typeof said.message, "string");
  });
});

describe("the health by Flux's CEL", () => {
  const [manifest] = engineFile("flux-health.yaml");
  const { healthCheckExprs } = manifest?.["spec"] as { healthCheckExprs: Readonly<Record<string, string>>[] };
  const IN_FLUX = { Healthy: "Current", Degraded: "Failed", Progressing: "InProgress", Suspended: "InProgress" };

  each(CASES, ({ kind, apiVersion, metadata, spec, status }, health) => {
    const { inProgress, failed, current } =
      healthCheckExprs.find((one) => one["kind"] === kind && one["apiVersion"] === apiVersion) ?? assert.fail(kind);
    const holds = (expression: string | undefined): boolean =>
      expression !== undefined && evaluate(expression, { metadata, spec, status }) === true;
    // In Flux's order.
    const said = holds(inProgress)
      ? "InProgress"
      : holds(failed)
        ? "Failed"
        : holds(current)
          ? "Current"
          : "InProgress";
    assert.equal(said, IN_FLUX[health]);
  });
});
