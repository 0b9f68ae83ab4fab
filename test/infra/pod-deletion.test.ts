/**
 * Who may delete pods of a group: by the webhook, whose conditions and function say the same (§5.12), and by the policy
 * (test/cluster/budgets plays both).
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CelScalar, celEnv, mapType, parse, plan } from "@bufbuild/cel";
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import { matchesSelector, type LabelSelector } from "../../reconciler/model/label-selector.ts";
import { type Deletion, type NotAsked, whyNotAsked } from "../../functions/eviction/pod-deletion.ts";
import { find } from "./manifests.ts";

interface Hook {
  readonly clientConfig: { readonly service: { readonly path: string } };
  readonly failurePolicy: string;
  readonly sideEffects: string;
  readonly objectSelector: LabelSelector;
  readonly matchConditions: readonly { readonly name: string; readonly expression: string }[];
}

const any = mapType(CelScalar.STRING, CelScalar.DYN);
const env = celEnv({ variables: { oldObject: any, request: any } });
const configuration = find(
  "pod-deletion-webhook/pod-deletion.yaml",
  "ValidatingWebhookConfiguration",
  "pod-deletion-zonewise",
);
const [hook] = configuration["webhooks"] as readonly Hook[];
assert.ok(hook);

const conditions = hook.matchConditions.map(({ expression }) => plan(env, parse(expression)));

/** As the API server decides: by the pod's labels, then by all conditions. */
function isAsked({ username, groups, pod }: Deletion): boolean {
  const userInfo = { username, ...(groups.length > 0 && { groups }) };
  return (
    matchesSelector(hook?.objectSelector ?? {}, pod.metadata?.labels ?? {}) &&
    conditions.every((evaluate) => evaluate({ oldObject: pod, request: { userInfo } } as never) === true)
  );
}

const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "zone-a", uid: "s", controller: true };
type Metadata = NonNullable<PodObject["metadata"]>;
const podOf = (metadata: Partial<Metadata> = {}, phase?: string): PodObject => ({
  metadata: { name: "zone-a-0", uid: "p", labels: { "rollout-group": "cache" }, ownerReferences: [owner], ...metadata },
  ...(phase !== undefined && { status: { phase } }),
});
const account = (name: string, namespace = "kube-system"): string => `system:serviceaccount:${namespace}:${name}`;
const byHand = (value: string): Partial<Metadata> => ({ annotations: { "zonewise/delete-by-hand": value } });

const CASES: readonly (readonly [
  who: string,
  expected: NotAsked | undefined,
  pod: PodObject,
  username: string,
  ...groups: readonly string[],
])[] = [
  ["a person", undefined, podOf({}, "Running"), "jane"],
  ["a person, of a pod without a status", undefined, podOf(), "jane", "system:authenticated"],
  ["a person, of a Pending pod", undefined, podOf({}, "Pending"), "jane"],
  ["an account of the namespace", undefined, podOf(), account("default", "shop"), "system:serviceaccounts"],
  ["an account that ends as the reconciler's", undefined, podOf(), account("not-zonewise-reconciler", "shop")],
  ["a user called as the reconciler", undefined, podOf(), "zonewise-reconciler"],
  ["the functions", undefined, podOf(), account("zonewise-functions", "shop")],
  ["a namespace that begins as kube-system", undefined, podOf(), account("x", "kube-system-2")],
  ["the StatefulSet controller", "ByController", podOf(), account("statefulset-controller")],
  ["the DaemonSet controller", "ByController", podOf(), account("daemon-set-controller")],
  ["the namespace controller", "ByController", podOf(), account("namespace-controller")],
  ["the garbage collector", "ByController", podOf(), account("generic-garbage-collector")],
  ["the collector of lost pods", "ByController", podOf(), account("pod-garbage-collector")],
  ["taint eviction", "ByController", podOf(), account("node-controller")],
  ["all controllers by one account", "ByController", podOf(), "system:kube-controller-manager"],
  ["a preemption", "ByController", podOf(), "system:kube-scheduler"],
  ["the API server", "ByController", podOf(), "system:apiserver"],
  ["a kubelet", "ByKubelet", podOf(), "system:node:node-1", "system:nodes", "system:authenticated"],
  ["the reconciler", "ByReconciler", podOf(), account("zonewise-reconciler", "shop")],
  ["the reconciler of another namespace", "ByReconciler", podOf(), account("zonewise-reconciler", "zonewise")],
  ["a terminating pod", "GoneAlready", podOf({ deletionTimestamp: "2026-01-01T00:00:00Z" }), "jane"],
  ["a completed pod", "GoneAlready", podOf({}, "Succeeded"), "jane"],
  ["a failed pod", "GoneAlready", podOf({}, "Failed"), "jane"],
  ["a pod of no group", "NoRolloutGroup", podOf({ labels: {} }), "jane"],
  ["a pod of nobody", "NoStatefulSet", podOf({ ownerReferences: [] }), "jane"],
  ["a pod of a ReplicaSet", "NoStatefulSet", podOf({ ownerReferences: [{ ...owner, kind: "ReplicaSet" }] }), "jane"],
  [
    "a StatefulSet of another API group",
    "NoStatefulSet",
    podOf({ ownerReferences: [{ ...owner, apiVersion: "apps.kruise.io/v1beta1" }] }),
    "jane",
  ],
  [
    "a StatefulSet that does not control it",
    "NoStatefulSet",
    podOf({ ownerReferences: [{ ...owner, controller: false }] }),
    "jane",
  ],
  ["the way out", "ByHand", podOf(byHand("true")), "jane"],
  ["the way out, not quite", undefined, podOf(byHand("True")), "jane"],
  ["another annotation", undefined, podOf({ annotations: { a: "true" } }), "jane"],
];

describe("who asks the budget before a pod is deleted", () => {
  for (const [who, expected, pod, username, ...groups] of CASES)
    it(`${who}: ${expected ?? "asks"}`, () => {
      const deletion = { pod, username, groups };
      assert.equal(whyNotAsked(deletion), expected, "the function");
      assert.equal(isAsked(deletion), expected === undefined, "the conditions of the configuration");
    });

  it("without a call, controllers pass while nothing answers, and everybody else is refused", () => {
    assert.equal(hook.clientConfig.service.path, "/admission/pod-deletion");
    assert.deepEqual([hook.failurePolicy, hook.sideEffects], ["Fail", "NoneOnDryRun"]);
  });
});

interface PolicySpec {
  readonly matchConditions: readonly { readonly name: string; readonly expression: string }[];
  readonly validations: readonly { readonly messageExpression: string }[];
}

const policy = find("pod-deletion-policy/policy.yaml", "ValidatingAdmissionPolicy", "pod-deletions.zonewise");
const spec = policy["spec"] as PolicySpec;

/** Optional fields as plain ones: the evaluator does not know their syntax. */
const withoutOptionals = (expression: string): string =>
  expression.replaceAll(/([\w.]+)\.\?(\w+)\.orValue\(([^()]*)\)/g, "(has($1.$2) ? $1.$2 : $3)");
const evaluate = (expression: string, input: object): unknown =>
  plan(env, parse(withoutOptionals(expression)))(input as never);

describe("the policy on deletions of pods", () => {
  const { expression = "" } = spec.matchConditions.find(({ name }) => name === "of-a-statefulset") ?? {};
  for (const [who, expected, pod] of CASES)
    it(`${expected === "NoStatefulSet" ? "leaves alone" : "concerns"} ${who}`, () =>
      assert.equal(evaluate(expression, { oldObject: pod }), expected !== "NoStatefulSet"));

  it("names the command by which this pod may go", () => {
    const [{ messageExpression } = { messageExpression: "" }] = spec.validations;
    const message = evaluate(messageExpression, { oldObject: podOf(), request: { namespace: "mimir" } });
    assert.match(String(message), /: kubectl -n mimir annotate pod zone-a-0 zonewise\/delete-by-hand=true$/);
  });
});
