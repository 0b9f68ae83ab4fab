/** Subresources that do something when they are created: pods/eviction and serviceaccounts/token. */
import { type Answer, jsonAnswer, successAnswer } from "./answer.ts";
import { badRequest, plainError, tooMany } from "./api-error.ts";
import { BUDGETS } from "./controllers/objects.ts";
import { dig, fieldsOf, isTrue, type KubeObject, listOf, numberOf, put, timestamp } from "./objects.ts";
import { existing } from "./read.ts";
import type { Api, Ask } from "./request.ts";
import { objectSelector } from "./selectors.ts";
import type { Store } from "./store.ts";
import { deleteOptions } from "./write.ts";

/** A delete that core PodDisruptionBudgets may refuse for now (kubernetes/pkg/registry/core/pod/storage/eviction.go). */
export async function evict(api: Api, ask: Ask): Promise<Answer> {
  const { store, admission } = api;
  const { name, namespace = "" } = ask;
  const body = fieldsOf(ask.body);
  const metadata = { name, ...fieldsOf(body["metadata"]), namespace };
  if (metadata.name !== name) throw badRequest("name in URL does not match name in Eviction object");
  const object = { apiVersion: "policy/v1", kind: "Eviction", ...body, metadata };
  const mutated = (await admission.mutate(ask, { operation: "CREATE", object })) ?? object;
  await admission.check(ask, { operation: "CREATE", object: mutated });
  const budget = spentBudget(store, existing(api, ask));
  const options = fieldsOf(fieldsOf(mutated)["deleteOptions"]);
  if (!ask.dryRun && listOf(options["dryRun"]).length === 0) {
    if (budget) store.update(BUDGETS, budget);
    store.remove("pods", namespace, name, deleteOptions(options));
  }
  return successAnswer(201, { code: 201 });
}

/** The budget as the pod's eviction leaves it; undefined when it costs none. Throws TooManyRequests when the budget does not allow it. */
function spentBudget(store: Store, pod: KubeObject): KubeObject | undefined {
  const { namespace, labels = {}, deletionTimestamp } = pod.metadata;
  if (deletionTimestamp || dig(pod, "status", "phase") !== "Running") return undefined;
  const [budget, another] = store.list(BUDGETS, namespace).filter((one) => objectSelector(dig(one, "spec", "selector"))(labels));
  if (another) throw plainError("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  if (!budget) return undefined;
  const { name, generation } = budget.metadata;
  const { observedGeneration, ...counts } = fieldsOf(budget["status"]) as Record<string, number>;
  const { disruptionsAllowed = 0, currentHealthy = 0, desiredHealthy = 0 } = counts;
  // What is broken may go when the policy says so, or when enough others are healthy.
  const isSpare = currentHealthy >= desiredHealthy || dig(budget, "spec", "unhealthyPodEvictionPolicy") === "AlwaysAllow";
  if (isSpare && !isTrue(pod, "Ready")) return undefined;
  if (observedGeneration === generation && disruptionsAllowed > 0)
    return put(budget, ["status", "disruptionsAllowed"], disruptionsAllowed - 1);
  const message = `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  throw tooMany("Cannot evict pod as it would violate the pod's disruption budget.", 0, [{ reason: "DisruptionBudget", message }]);
}

export async function requestToken(api: Api, ask: Ask): Promise<Answer> {
  const { name, namespace = "" } = existing(api, ask).metadata;
  const seconds = numberOf(dig(ask.body, "spec", "expirationSeconds")) ?? 3600;
  const audiences = listOf(dig(ask.body, "spec", "audiences")).map(String);
  const { token, expires } = await api.tokens.issue(namespace, name, audiences, seconds);
  const status = { token, expirationTimestamp: timestamp(expires) };
  return jsonAnswer(201, { kind: "TokenRequest", apiVersion: "authentication.k8s.io/v1", metadata: { name, namespace }, status });
}
