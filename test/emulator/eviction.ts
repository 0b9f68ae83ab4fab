/** pods/eviction: a delete that core PodDisruptionBudgets may refuse for now (kubernetes/pkg/registry/core/pod/storage/eviction.go). */
import { successAnswer } from "./answer.ts";
import type { Api } from "./api.ts";
import { badRequest, forbidden, notFound, plainError, tooMany } from "./api-error.ts";
import { dig, fieldsOf, isTrue, listOf, numberOf, put, timestamp } from "./objects.ts";
import type { KubeObject } from "./objects.ts";
import { deleteOptions } from "./remove.ts";
import type { Answer, Ask } from "./request.ts";
import { objectSelector } from "./selectors.ts";
import { bodyOf, optionsOf } from "./body.ts";

const BUDGETS = "poddisruptionbudgets.policy";
const VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget.";

export async function evict(api: Api, ask: Ask): Promise<Answer> {
  const { store, admission } = api;
  const body = bodyOf(ask);
  const wanted = dig(body, "metadata", "name");
  if (wanted !== undefined && wanted !== ask.name) throw badRequest("name in URL does not match name in Eviction object");
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    ...body,
    metadata: { ...fieldsOf(body["metadata"]), name: ask.name, namespace: ask.namespace ?? "" },
  };
  const options = optionsOf(ask, "CreateOptions");
  await admission.mutate(ask, { operation: "CREATE", object: eviction, options });
  await admission.check(ask, { operation: "CREATE", object: eviction, options });
  const pod = store.get("pods", ask.namespace, ask.name);
  if (!pod) throw notFound("pods", ask.name);
  const sent = fieldsOf(body["deleteOptions"]);
  const isDryRun = ask.dryRun || listOf(sent["dryRun"]).length > 0;
  if (needsBudget(pod)) spendBudget(api, pod, isDryRun);
  if (isDryRun) return successAnswer(201);
  store.update("pods", withReason(pod, api.clock.now()));
  store.remove("pods", ask.namespace, ask.name, { uid: pod.metadata.uid, ...deleteOptions(ask, sent) });
  return successAnswer(201);
}

/** The pod says why it goes. */
function withReason(pod: KubeObject, now: number): KubeObject {
  const others = listOf(dig(pod, "status", "conditions")).filter((one) => dig(one, "type") !== "DisruptionTarget");
  const reason = {
    type: "DisruptionTarget",
    status: "True",
    reason: "EvictionByEvictionAPI",
    message: "Eviction API: evicting",
    lastTransitionTime: timestamp(now),
  };
  return put(pod, ["status", "conditions"], [...others, reason]);
}

function needsBudget(pod: KubeObject): boolean {
  return pod.metadata.deletionTimestamp === undefined && !["Succeeded", "Failed", "Pending"].includes(String(dig(pod, "status", "phase")));
}

function spendBudget({ store, clock }: Api, pod: KubeObject, isDryRun: boolean): void {
  const budgets = store
    .list(BUDGETS, pod.metadata.namespace)
    .filter((budget) => objectSelector(dig(budget, "spec", "selector"))(pod.metadata.labels ?? {}));
  if (budgets.length > 1)
    throw plainError("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  const [budget] = budgets;
  if (!budget || mayEvictUnhealthy(pod, budget)) return;
  const spent = decrement(budget, pod.metadata.name, clock.now());
  if (!isDryRun) store.update(BUDGETS, spent);
}

/** A pod that is not ready costs the budget nothing when the policy allows, or when enough others are healthy. */
function mayEvictUnhealthy(pod: KubeObject, budget: KubeObject): boolean {
  if (isTrue(pod, "Ready")) return false;
  if (dig(budget, "spec", "unhealthyPodEvictionPolicy") === "AlwaysAllow") return true;
  const healthy = numberOf(dig(budget, "status", "currentHealthy")) ?? 0;
  const desired = numberOf(dig(budget, "status", "desiredHealthy")) ?? 0;
  return healthy >= desired && desired > 0;
}

function decrement(budget: KubeObject, podName: string, now: number): KubeObject {
  const { name, generation = 0 } = budget.metadata;
  const cause = (message: string) => [{ reason: "DisruptionBudget", message }];
  if ((numberOf(dig(budget, "status", "observedGeneration")) ?? 0) < generation)
    throw tooMany(VIOLATES, 10, cause(`The disruption budget ${name} is still being processed by the server.`));
  const allowed = numberOf(dig(budget, "status", "disruptionsAllowed")) ?? 0;
  if (allowed < 0) throw forbidden("poddisruptionbudget", name, "pdb disruptions allowed is negative");
  if (allowed === 0) {
    const healthy = numberOf(dig(budget, "status", "currentHealthy")) ?? 0;
    const desired = numberOf(dig(budget, "status", "desiredHealthy")) ?? 0;
    const needs = `needs ${desired} healthy pods and has ${healthy} currently`;
    throw tooMany(
      VIOLATES,
      0,
      cause(`The disruption budget ${name} ${healthy > desired ? "does not allow evicting pods currently" : needs}`),
    );
  }
  const disrupted = { ...fieldsOf(dig(budget, "status", "disruptedPods")), [podName]: timestamp(now) };
  return put(put(budget, ["status", "disruptionsAllowed"], allowed - 1), ["status", "disruptedPods"], disrupted);
}
