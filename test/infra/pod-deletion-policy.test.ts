/**
 * Which owners the policy on deletions of pods sees, and which command its refusal names
 * (test/cluster/budgets/pod-deletion-policy.cluster.ts plays it).
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CelScalar, celEnv, mapType, parse, plan } from "@bufbuild/cel";
import { find } from "./manifests.ts";

interface PolicySpec {
  readonly matchConditions: readonly { readonly name: string; readonly expression: string }[];
  readonly validations: readonly { readonly messageExpression: string }[];
}

const any = mapType(CelScalar.STRING, CelScalar.DYN);
const env = celEnv({ variables: { oldObject: any, request: any } });
const policy = find("pod-deletion-policy/policy.yaml", "ValidatingAdmissionPolicy", "pod-deletions.zonewise");
const spec = policy["spec"] as PolicySpec;

/** Optional fields as plain ones: the evaluator does not know their syntax. */
const withoutOptionals = (expression: string): string =>
  expression.replaceAll(/([\w.]+)\.\?(\w+)\.orValue\(([^()]*)\)/g, "(has($1.$2) ? $1.$2 : $3)");
const evaluate = (expression: string, input: object): unknown =>
  plan(env, parse(withoutOptionals(expression)))(input as never);

const podOf = (...ownerReferences: readonly object[]) => ({
  metadata: { name: "zone-a-0", labels: { "rollout-group": "cache" }, ownerReferences },
});

describe("the policy on deletions of pods", () => {
  for (const [who, expected, owner] of [
    ["a StatefulSet", true, { apiVersion: "apps/v1", kind: "StatefulSet", controller: true }],
    ["another kind", false, { apiVersion: "apps/v1", kind: "ReplicaSet", controller: true }],
    [
      "a StatefulSet of another API group",
      false,
      { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet", controller: true },
    ],
    ["a StatefulSet that does not control it", false, { apiVersion: "apps/v1", kind: "StatefulSet" }],
  ] as const)
    it(`${expected ? "concerns" : "leaves alone"} a pod of ${who}`, () => {
      const { expression = "" } = spec.matchConditions.find(({ name }) => name === "of-a-statefulset") ?? {};
      assert.equal(evaluate(expression, { oldObject: podOf(owner) }), expected);
    });

  it("names the command by which this pod may go", () => {
    const [{ messageExpression } = { messageExpression: "" }] = spec.validations;
    const message = evaluate(messageExpression, { oldObject: podOf(), request: { namespace: "mimir" } });
    assert.match(String(message), /: kubectl -n mimir annotate pod zone-a-0 zonewise\/delete-by-hand=true$/);
  });
});
