/** Subresources whose creation is an action: pods/eviction and serviceaccounts/token. */
import { type Answer, jsonAnswer, successAnswer } from "./answer.ts";
import { badRequest, conflict, errorWithoutReason, notFound, type StatusCause, tooManyRequests } from "./api-error.ts";
import { type BudgetStatus, withCondition } from "./controllers/disruption-budgets.ts";
import { BUDGETS } from "./controllers/objects.ts";
import { checkDeletePreconditions, type RemoveOptions } from "./lifecycle.ts";
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
  const { store, admission, clock } = api;
  const { name, namespace = "" } = request;
  const body = fieldsOf(request.body);
  const metadata = { name, ...fieldsOf(body["metadata"]), namespace };
  if (metadata.name !== name) throw badRequest("name in URL does not match name in Eviction object");
  const object = { apiVersion: "policy/v1", kind: "Eviction", ...body, metadata };
  const mutated = (await admission.mutate(request, { operation: "CREATE", object })) ?? object;
  await admission.validate(request, { operation: "CREATE", object: mutated });
  const given = fieldsOf(fieldsOf(mutated)["deleteOptions"]);
  const isDryRun = request.dryRun || listOf(given["dryRun"]).length > 0;
  const pod = getExisting(api, request);
  const isGuarded = !pod.metadata.deletionTimestamp && dig(pod, "status", "phase") === "Running";
  const spent = isGuarded ? spentBudget(store, pod, clock.now()) : undefined;
  const { uid, resourceVersion } = fieldsOf(given["preconditions"]) as RemoveOptions;
  // For a pod that may go because it is not ready, the version is replaced by the one that was read.
  const preconditions = { ...(uid && { uid }), ...(resourceVersion && spent !== "unhealthy" && { resourceVersion }) };
  if (!isDryRun && typeof spent === "object") store.update(BUDGETS, spent);
  // Before anything is known to be wrong with the options.
  if (!isDryRun) announce(store, pod, preconditions, clock.now());
  const { resourceVersion: _version, ...unversioned } = deleteOptions(given);
  if (isDryRun) {
    checkDeletePreconditions(pod, preconditions);
    return successAnswer(201, { code: 201 });
  }
  store.remove("pods", namespace, name, unversioned);
  return successAnswer(201, { code: 201 });
}

/** Marks the pod before it is deleted: addConditionAndDeletePod. Throws Conflict. */
function announce(store: Store, pod: KubeObject, options: RemoveOptions, now: number): void {
  checkDeletePreconditions(pod, options);
  const condition = {
    type: "DisruptionTarget",
    status: "True",
    reason: "EvictionByEvictionAPI",
    message: "Eviction API: evicting",
    lastTransitionTime: timestamp(now),
  };
  const others = listOf(dig(pod, "status", "conditions")).filter((one) => dig(one, "type") !== condition.type);
  store.update("pods", put(pod, ["status", "conditions"], [...others, condition]));
}

/**
 * Returns the budget after the pod's eviction, or "unhealthy" if its budget does not guard it as it is, undefined
 * without a budget. Throws TooManyRequests if the
 * budget does not allow it. `now` in ms since the epoch.
 */
function spentBudget(store: Store, pod: KubeObject, now: number): KubeObject | "unhealthy" | undefined {
  const { namespace, labels = {} } = pod.metadata;
  const selects = (budget: KubeObject): boolean => objectSelector(dig(budget, "spec", "selector"))(labels);
  const [budget, second] = store.list(BUDGETS, namespace).filter(selects);
  if (second)
    throw errorWithoutReason(
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    );
  if (!budget) return undefined;
  const { name, generation = 0 } = budget.metadata;
  const status = fieldsOf(budget["status"]) as unknown as BudgetStatus;
  const { disruptionsAllowed = 0, currentHealthy = 0, desiredHealthy = 0, observedGeneration = 0 } = status;
  // A pod that is not ready may be evicted if the policy allows it, or if enough others are healthy.
  const unhealthyMayGo =
    (currentHealthy >= desiredHealthy && desiredHealthy > 0) ||
    dig(budget, "spec", "unhealthyPodEvictionPolicy") === "AlwaysAllow";
  if (unhealthyMayGo && !isTrue(pod, "Ready")) return "unhealthy";
  const denial = "Cannot evict pod as it would violate the pod's disruption budget.";
  const cause = (message: string): StatusCause[] => [{ reason: "DisruptionBudget", message }];
  if (observedGeneration < generation)
    throw tooManyRequests(denial, 10, cause(`The disruption budget ${name} is still being processed by the server.`));
  const failure = status.conditions?.find(({ reason }) => reason === "SyncFailed")?.message;
  if (failure !== undefined)
    throw tooManyRequests(
      denial,
      0,
      cause(`The disruption budget ${name} does not allow evicting pods currently because it failed sync: ${failure}`),
    );
  if (disruptionsAllowed === 0)
    throw tooManyRequests(
      denial,
      0,
      cause(
        currentHealthy > desiredHealthy
          ? `The disruption budget ${name} does not allow evicting pods currently`
          : `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
      ),
    );
  const spent = {
    ...status,
    disruptionsAllowed: disruptionsAllowed - 1,
    disruptedPods: { ...status.disruptedPods, [pod.metadata.name]: timestamp(now) },
  };
  return { ...budget, status: disruptionsAllowed === 1 ? withCondition(spent, timestamp(now)) : spent };
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
