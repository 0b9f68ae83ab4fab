/** Bugs that others of this field have had, as they would be here; the links say what they did. */
import type { Mutation } from "../mutation.ts";

export const FIELD_MUTATIONS: readonly Mutation[] = [
  {
    // https://github.com/grafana/rollout-operator/pull/20
    breaks: "field: a terminating pod is not ready, even if its probe has not failed yet",
    file: "reconciler/model/health.ts",
    find: "if (deletionTimestamp !== undefined) return {",
    replacement: "if (deletionTimestamp !== undefined && !isRunningAndReady(status)) return {",
    tests: ["test/reconciler/model/health.test.ts", "test/reconciler/rollout/properties.test.ts"],
  },
  {
    // https://github.com/grafana/rollout-operator/pull/105
    breaks: "field: no downscale is admitted if the other zones cannot be read",
    file: "functions/downscale/other-zones.ts",
    find: `refuseOnError("ZonesUnknown", "an error occurred while checking whether StatefulSets have non-updated replicas"),`,
    replacement: "() => undefined,",
    tests: ["test/functions/prepare-trouble.test.ts"],
  },
  {
    // https://github.com/grafana/rollout-operator/pull/324
    breaks: "field: the rollout asks the budget before it deletes a pod",
    file: "reconciler/rollout/act/take-rollout-step.ts",
    find: "chosen.map((pod) => actor.mayDisrupt(pod, zone, actor.fence.write()))",
    replacement:
      "chosen.map((pod) => (pod ? Promise.resolve(undefined) : actor.mayDisrupt(pod, zone, actor.fence.write())))",
    tests: ["test/reconciler/run/tick-budget.test.ts"],
  },
  {
    // https://github.com/grafana/rollout-operator/issues/339
    breaks: "field: pods of a template that never comes up are replaced once it is mended",
    file: "reconciler/rollout/decide-rollout.ts",
    find: "(group) => firstOf(inOrder(group.zones).map((zone) => () => idlePods(zone, group)))();",
    replacement: "() => undefined;",
    tests: ["test/reconciler/rollout/broken-pods.test.ts"],
  },
  {
    // https://github.com/kubernetes/kubernetes/issues/64923, https://github.com/kubernetes-sigs/karpenter/pull/998
    breaks: "field: an eviction reaches no pod that was made since under the same name",
    file: "functions/eviction/pod-eviction.ts",
    find: "if (pod === undefined || uid !== undefined) return {};",
    replacement: `if (pod !== "" || uid !== undefined) return {};`,
    tests: ["test/functions/eviction/pinned.test.ts"],
  },
  {
    // https://github.com/kubernetes/kubernetes/issues/82149
    breaks: "field: the controller that counts does not overwrite what an eviction has reserved meanwhile",
    file: "infra/kubernetes/write-status.ts",
    find: "metadata: { ...place, uid, resourceVersion },",
    replacement: "metadata: { ...place, uid },",
    tests: ["test/infra/kubernetes/write-status.test.ts"],
  },
];
