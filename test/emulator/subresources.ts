/** Subresources whose creation is an action: pods/eviction and serviceaccounts/token. */
import { type Answer, jsonAnswer, successAnswer } from "./answer.ts";
import { badRequest, conflict, errorWithoutReason, notFound, tooManyRequests } from "./api-error.ts";
import { BUDGETS } from "./controllers/objects.ts";
import { dig, fieldsOf, isTrue, type KubeObject, listOf, numberOf, put, textOf, timestamp } from "./objects.ts";
import { getExisting } from "./read.ts";
import type { Api } from "./api.ts";
import type { ApiRequest } from "./request.ts";
import { objectSelector } from "./selectors.ts";
import type { Store } from "./store.ts";
import { deleteOptions } from "./write.ts";

/**
 * Deletes the pod unless a PodDisruptionBudget refuses it for now
 * (kubernetes/pkg/registry/core/pod/storage/eviction.go).
 */
export async function evict(api: Api, request: ApiRequest): Promise<Answer> {
  const { store, admission } = api;
  const { name, namespace = "" } = request;
  const body = fieldsOf(request.body);
  const metadata = { name, ...fieldsOf(body["metadata"]), namespace };
  if (metadata.name !== name) throw badRequest("name in URL does not match name in Eviction object");
  const object = { apiVersion: "policy/v1", kind: "Eviction", ...body, metadata };
  const mutated = (await admission.mutate(request, { operation: "CREATE", object })) ?? object;
  await admission.validate(request, { operation: "CREATE", object: mutated });
  const budget = spentBudget(store, getExisting(api, request));
  const options = fieldsOf(fieldsOf(mutated)["deleteOptions"]);
  if (!request.dryRun && listOf(options["dryRun"]).length === 0) {
    if (budget) store.update(BUDGETS, budget);
    store.remove("pods", namespace, name, deleteOptions(options));
  }
  return successAnswer(201, { code: 201 });
}

/**
 * Returns the budget after the pod's eviction, undefined if none is spent. Throws TooManyRequests if the
 * budget does not allow it.
 */
function spentBudget(store: Store, pod: KubeObject): KubeObject | undefined {
  const { namespace, labels = {}, deletionTimestamp } = pod.metadata;
  if (deletionTimestamp || dig(pod, "status", "phase") !== "Running") return undefined;
  const selects = (budget: KubeObject): boolean => objectSelector(dig(budget, "spec", "selector"))(labels);
  const [budget, second] = store.list(BUDGETS, namespace).filter(selects);
  if (second)
    throw errorWithoutReason(
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    );
  if (!budget) return undefined;
  const { name, generation } = budget.metadata;
  const { observedGeneration, ...counts } = fieldsOf(budget["status"]) as Record<string, number>;
  const { disruptionsAllowed = 0, currentHealthy = 0, desiredHealthy = 0 } = counts;
  // A pod that is not ready may be evicted if the policy allows it, or if enough others are healthy.
  const unhealthyMayGo =
    currentHealthy >= desiredHealthy || dig(budget, "spec", "unhealthyPodEvictionPolicy") === "AlwaysAllow";
  if (unhealthyMayGo && !isTrue(pod, "Ready")) return undefined;
  if (observedGeneration === generation && disruptionsAllowed > 0)
    return put(budget, ["status", "disruptionsAllowed"], disruptionsAllowed - 1);
  const message = `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  throw tooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0, [
    { reason: "DisruptionBudget", message },
  ]);
}

export async function requestToken(api: Api, request: ApiRequest): Promise<Answer> {
  const { name, namespace = "" } = getExisting(api, request).metadata;
  const seconds = numberOf(dig(request.body, "spec", "expirationSeconds")) ?? 3600;
  const audiences = listOf(dig(request.body, "spec", "audiences")).map(String);
  const pod = boundPod(api, namespace, dig(request.body, "spec", "boundObjectRef"));
  const { token, expires } = await api.tokens.issue(namespace, name, { audiences, seconds, ...(pod && { pod }) });
  const status = { token, expirationTimestamp: timestamp(expires) };
  return jsonAnswer(201, {
    kind: "TokenRequest",
    apiVersion: "authentication.k8s.io/v1",
    metadata: { name, namespace },
    status,
  });
}

/** The pod that a requested token is bound to; throws NotFound or Conflict if it is another one. */
function boundPod(
  { store }: Api,
  namespace: string,
  reference: unknown,
): { readonly name: string; readonly uid: string } | undefined {
  if (dig(reference, "kind") !== "Pod") return undefined;
  const name = textOf(dig(reference, "name")) ?? "";
  const pod = store.get("pods", namespace, name);
  if (!pod) throw notFound("pods", name);
  const { uid } = pod.metadata;
  const wanted = textOf(dig(reference, "uid"));
  if (wanted !== undefined && wanted !== uid)
    throw conflict(
      "Pod",
      name,
      `the UID in the bound object reference (${wanted}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  return { name, uid };
}
