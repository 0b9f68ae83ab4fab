/**
 * The policies of `/scale` refuse what they know for certain, and leave the rest to the webhook behind them
 * (test/cluster/downscale/scale-policies.cluster.ts plays them).
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CelScalar, celEnv, mapType, parse, plan } from "@bufbuild/cel";
import { find } from "./manifests.ts";

interface Spec {
  readonly failurePolicy: string;
  readonly paramKind: object;
  readonly matchConstraints: { readonly resourceRules: readonly object[] };
  readonly variables: readonly { readonly name: string; readonly expression: string }[];
  readonly validations: readonly { readonly expression: string; readonly messageExpression: string }[];
}

const FILE = "scale-policies/no-downscale.yaml";
const KINDS = { StatefulSet: "statefulsets", Deployment: "deployments", ReplicaSet: "replicasets" };

const any = mapType(CelScalar.STRING, CelScalar.DYN);
const env = celEnv({ variables: { object: any, oldObject: any, params: any, request: any, variables: any } });

/** JSON as CEL has it: whole numbers are integers. */
function celValue(value: unknown): unknown {
  if (typeof value === "number") return BigInt(value);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, celValue(part)]));
}

const evaluate = (expression: string, input: object): unknown => plan(env, parse(expression))(celValue(input) as never);

const scale = (replicas: number): object => ({
  metadata: { name: "zone-a", resourceVersion: "7" },
  spec: replicas === 0 ? {} : { replicas },
});
const labelled = (name: string, resourceVersion: string): object => ({ metadata: { name, resourceVersion } });

const CASES: readonly (readonly [
  what: string,
  from: number,
  to: number,
  params: object,
  verdict: "refused" | "left",
])[] = [
  ["fewer replicas of a labelled object", 3, 2, labelled("zone-a", "7"), "refused"],
  ["none at all, which a Scale leaves out", 3, 0, labelled("zone-a", "7"), "refused"],
  ["more", 3, 4, labelled("zone-a", "7"), "left"],
  ["more than none", 0, 1, labelled("zone-a", "7"), "left"],
  ["as many", 3, 3, labelled("zone-a", "7"), "left"],
  ["fewer, where another object is labelled", 3, 2, labelled("zone-b", "7"), "left"],
  ["fewer of an object that was labelled in another version", 3, 2, labelled("zone-a", "6"), "left"],
];

for (const [kind, plural] of Object.entries(KINDS))
  describe(`the policy of /scale of ${plural}`, () => {
    const name = `no-downscale-${plural}-scale.zonewise`;
    const spec = find(FILE, "ValidatingAdmissionPolicy", name)["spec"] as Spec;
    const { expression = "", messageExpression = "" } = spec.validations[0] ?? {};

    for (const [what, from, to, params, verdict] of CASES)
      it(`${what}: ${verdict}`, () => {
        const input = {
          oldObject: scale(from),
          object: scale(to),
          params,
          request: { name: "zone-a", namespace: "n", resource: { resource: plural } },
        };
        const variables = Object.fromEntries(
          spec.variables.map((one) => [one.name, Number(evaluate(one.expression, { ...input, variables: {} }))]),
        );
        assert.equal(evaluate(expression, { ...input, variables }), verdict === "left");
        if (verdict === "left") return;
        const why = `downscale of ${plural}/zone-a in n from ${from} to ${to} replicas is not allowed because it has the label 'grafana.com/no-downscale=true'`;
        assert.equal(evaluate(messageExpression, { ...input, variables }), why);
      });

    it("fails open, and reads the labelled objects of the request's namespace", () => {
      assert.equal(spec.failurePolicy, "Ignore");
      assert.deepEqual(spec.paramKind, { apiVersion: "apps/v1", kind });
      assert.deepEqual(spec.matchConstraints.resourceRules, [
        {
          operations: ["UPDATE"],
          apiGroups: ["apps"],
          apiVersions: ["v1"],
          resources: [`${plural}/scale`],
          scope: "Namespaced",
        },
      ]);
      assert.deepEqual(find(FILE, "ValidatingAdmissionPolicyBinding", name)["spec"], {
        policyName: name,
        paramRef: {
          selector: { matchLabels: { "grafana.com/no-downscale": "true" } },
          parameterNotFoundAction: "Allow",
        },
        validationActions: ["Deny"],
      });
    });
  });
