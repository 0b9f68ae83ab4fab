/**
 * The expressions that users copy: their placeholders can be filled in, and an alert does not pass because what it is
 * about is gone. Whether they are PromQL, a real Prometheus is asked (prometheus.cluster.ts).
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import type { CustomObject } from "../../infra/kubernetes/custom-resources.ts";
import { readGate } from "../../reconciler/gates/gate.ts";
import { findImpossible, sampleValues } from "../../reconciler/gates/placeholder-values.ts";
import { fillPlaceholders } from "../../reconciler/checks/placeholders.ts";
import { gateOf } from "../builders/gates.ts";
import { EXAMPLES, FOUND } from "./expressions.ts";
import { readPage } from "./pages.ts";

/** Gates have placeholders. */
const VALUES = sampleValues(gateOf());

describe("the expressions of the documentation", () => {
  it("are found", () => {
    const paths = new Set(FOUND.map(({ path }) => path));
    for (const path of ["docs/guides/gates.md", "docs/guides/phased-rollouts.md"]) assert.ok(paths.has(path), path);
  });
  for (const { path, expr, successWhen } of FOUND)
    it(`${path}: ${expr.replaceAll(/\s+/g, " ")}`, () => {
      assert.equal(fillPlaceholders(expr, VALUES).problem, undefined);
      if (successWhen === "WithinBaseline") return;
      if (successWhen === "NoData") assert.match(expr, /\bor absent\(/, "no data is no success");
      if (/\brate\(/.test(expr)) assert.match(expr, /\bor up\{[^}]+\} == 0\b/);
    });
});

describe("the gates of the examples", () => {
  const gates = EXAMPLES.flatMap((path) =>
    parseAllDocuments(readPage(path))
      .map((one) => one.toJS() as CustomObject)
      .filter(({ kind }) => kind === "RolloutGate"),
  );
  it("are found", () => assert.ok(gates.some(({ metadata }) => metadata.name === "against-the-other-zones")));
  for (const object of gates)
    it(`${object.metadata.name} can be read, and compares pods that there are`, () => {
      const metadata = { ...object.metadata, namespace: "mimir" };
      const gate = readGate({ ...object, metadata }) ?? assert.fail();
      assert.ok(gate.checks.length > 0, "its spec cannot be read");
      assert.deepEqual(findImpossible(gate), []);
    });
});
