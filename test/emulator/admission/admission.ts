/**
 * Admission webhooks: mutating ones run one after the other, those with `IfNeeded` once more if another changed the object after them, validating ones in parallel. When a call fails,
 * the webhook's failurePolicy decides whether the request is refused.
 */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { V1MutatingWebhook as Webhook, V1RuleWithOperations } from "@kubernetes/client-node";
import { messageOf } from "../../../infra/errors.ts";
import { ApiError, statusError } from "../api-error.ts";
import { type Draft, type Fields, fieldsOf, listOf, numberOf, plainText } from "../objects.ts";
import { jsonPatch } from "../patch.ts";
import type { ApiRequest } from "../request.ts";
import { objectSelector } from "../selectors.ts";
import type { Store } from "../store.ts";
import { callWebhook, type PostReview } from "./call-webhook.ts";
import type { Expression } from "../cel.ts";
import { compile } from "./match-conditions.ts";

/** What admission decides on (apiserver's admission.Attributes); a DELETE has no `object`. */
type Attributes = {
  readonly operation: "CREATE" | "UPDATE" | "DELETE";
  readonly object?: Draft;
  readonly oldObject?: Draft;
};

/** One request on its way through admission. */
interface Admission {
  readonly request: ApiRequest;
  readonly attributes: Attributes;
}

/** `post` sends the reviews; over TLS by default. */
export function createAdmission(store: Store, post?: PostReview) {
  return {
    /** Returns the object as the mutating webhooks leave it; throws a webhook's denial. */
    mutate: async (request: ApiRequest, attributes: Attributes): Promise<Draft | undefined> => {
      let { object } = attributes;
      const reinvocable: Webhook[] = [];
      const outdated = new Set<Webhook>();
      const callEach = async (webhooks: readonly Webhook[]): Promise<void> => {
        for (const webhook of webhooks) {
          const { patch } = await callOne({ store, post }, webhook, {
            request,
            attributes: object ? { ...attributes, object } : attributes,
          });
          const before = object;
          if (object && patch)
            object = applyWebhookPatch(webhook, object, Buffer.from(plainText(patch), "base64").toString());
          if (!isDeepStrictEqual(before, object)) for (const earlier of reinvocable.splice(0)) outdated.add(earlier);
          if (webhook.reinvocationPolicy === "IfNeeded") reinvocable.push(webhook);
        }
      };
      const webhooks = matchingWebhooks(store, "mutating", { request, attributes });
      await callEach(webhooks);
      // Once more at most: apiserver's plugin/webhook/mutating/reinvocationcontext.go.
      await callEach(webhooks.filter((webhook) => outdated.has(webhook)));
      return object;
    },
    /** Throws a validating webhook's denial. */
    validate: async (request: ApiRequest, attributes: Attributes): Promise<void> => {
      const webhooks = matchingWebhooks(store, "validating", { request, attributes });
      const calls = webhooks.map((webhook) => callOne({ store, post }, webhook, { request, attributes }));
      await Promise.allSettled(calls);
      await Promise.all(calls);
    },
  };
}

function webhookError(text: string): ApiError {
  return statusError("InternalError", `Internal error occurred: ${text}`, { causes: [{ message: text }] });
}

interface Callers {
  readonly store: Store;
  readonly post: PostReview | undefined;
}

/**
 * Calls one webhook. Returns its response, empty if no condition asks for the call, or if it failed and the policy is
 * Ignore; throws its denial.
 */
async function callOne(
  { store, post }: Callers,
  webhook: Webhook,
  { request, attributes }: Admission,
): Promise<Fields> {
  const { name, failurePolicy } = webhook;
  let response: Fields;
  try {
    const review = admissionRequestOf({ request, attributes });
    if (!meetsConditions(webhook, review)) return {};
    response = await callWebhook(store, webhook, review, post);
  } catch (error) {
    if (failurePolicy === "Ignore") return {};
    throw webhookError(`failed calling webhook "${name}": ${messageOf(error)}`);
  }
  request.warnings.push(...listOf(response["warnings"]).map(String));
  if (response["allowed"] !== true) throw denial(name, fieldsOf(response["status"]));
  return response;
}

/** apiserver's plugin/webhook/errors.ToStatusErr. */
function denial(name: string, status: Fields): ApiError {
  const explanation = plainText(status["message"]) || plainText(status["reason"]);
  const message = `admission webhook "${name}" denied the request${explanation ? `: ${explanation}` : " without explanation"}`;
  return new ApiError({ ...status, message, code: Math.min(Math.max(numberOf(status["code"]) ?? 0, 400), 599) });
}

function applyWebhookPatch({ name }: Webhook, object: Draft, patch: string): Draft {
  try {
    return jsonPatch(object, JSON.parse(patch)) as Draft;
  } catch {
    throw webhookError(`admission webhook "${name}" sent a patch that does not apply`);
  }
}

/** Kinds of the subresources' bodies. */
const BODY_KINDS: Readonly<Record<string, object>> = {
  scale: { group: "autoscaling", version: "v1", kind: "Scale" },
  eviction: { group: "policy", version: "v1", kind: "Eviction" },
};

/** The API server sends patches as updates, with UpdateOptions. */
const OPTIONS = { CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions" };

function admissionRequestOf({ request, attributes }: Admission): Fields {
  const { operation, object, oldObject } = attributes;
  const { name, namespace, user: userInfo, dryRun } = request;
  const { group, version, plural } = request.kind;
  const kind = BODY_KINDS[request.subresource] ?? { group, version, kind: request.kind.kind };
  const resource = { group, version, resource: plural };
  const subResource = request.subresource || undefined;
  const original = { requestKind: kind, requestResource: resource, requestSubResource: subResource };
  const objects = { object: object ?? null, oldObject: oldObject ?? null };
  const common = { dryRun: dryRun ? ["All"] : undefined, fieldManager: request.query.get("fieldManager") ?? undefined };
  const options = {
    kind: OPTIONS[operation],
    apiVersion: "meta.k8s.io/v1",
    ...common,
    ...(operation === "DELETE" && fieldsOf(request.body)),
  };
  return {
    uid: randomUUID(),
    kind,
    resource,
    subResource,
    ...original,
    name,
    namespace,
    operation,
    userInfo,
    ...objects,
    dryRun,
    options,
  };
}

const compiled = new Map<string, Expression>();

/** A condition that is false excludes the request, whatever errors others have; otherwise throws the first error. */
function meetsConditions({ matchConditions = [] }: Webhook, review: Fields): boolean {
  const { object, oldObject } = review;
  let failure: Error | undefined;
  for (const { expression } of matchConditions) {
    const evaluate = compiled.get(expression) ?? compile(expression);
    compiled.set(expression, evaluate);
    try {
      if (evaluate({ object, oldObject, request: review }) === false) return false;
    } catch (error) {
      failure ??= error as Error;
    }
  }
  if (failure) throw failure;
  return true;
}

const GROUP = "admissionregistration.k8s.io";

/**
 * The webhooks to call, in order of their configurations' names. Requests for webhook configurations call
 * none.
 */
function matchingWebhooks(
  store: Store,
  type: "mutating" | "validating",
  { request, attributes }: Admission,
): Webhook[] {
  const { operation, object, oldObject } = attributes;
  if (request.kind.group === GROUP) return [];
  // A Namespace is selected by its own labels; a namespaceSelector never excludes other cluster-scoped
  // objects.
  const namespace =
    request.resource === "namespaces"
      ? (object ?? oldObject)
      : store.get("namespaces", undefined, request.namespace ?? "");
  const selects = (selector: object = {}, target?: Draft): boolean =>
    target !== undefined && objectSelector(selector)(target.metadata.labels ?? {});
  return store
    .list(`${type}webhookconfigurations.${GROUP}`)
    .flatMap((configuration) => listOf(configuration["webhooks"]) as readonly Webhook[])
    .filter(
      (webhook) =>
        webhook.rules?.some((rule) => ruleMatches(rule, request, operation)) &&
        (!namespace || selects(webhook.namespaceSelector, namespace)) &&
        (selects(webhook.objectSelector, object) || selects(webhook.objectSelector, oldObject)),
    );
}

function ruleMatches(
  rule: V1RuleWithOperations,
  { kind, subresource, namespace }: ApiRequest,
  operation: string,
): boolean {
  const { scope = "*", operations = [], apiGroups = [], apiVersions = [], resources = [] } = rule;
  const suffix = subresource && `/${subresource}`;
  const has = (listed: readonly string[], ...accepted: readonly string[]): boolean =>
    accepted.some((value) => listed.includes(value));
  return (
    (scope === "*" || (scope === "Namespaced") === (namespace !== undefined)) &&
    has(operations, operation, "*") &&
    has(apiGroups, kind.group, "*") &&
    has(apiVersions, kind.version, "*") &&
    has(resources, `${kind.plural}${suffix}`, `*${suffix}`, `${kind.plural}/*`, "*/*")
  );
}
