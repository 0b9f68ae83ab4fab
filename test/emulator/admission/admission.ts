/** Admission webhooks: mutating ones in turn, validating ones side by side. A webhook that fails is refused or passed over as its policy says. */
import { randomUUID } from "node:crypto";
import type { V1RuleWithOperations, V1ValidatingWebhook as Webhook } from "@kubernetes/client-node";
import { messageOf } from "../../../infra/errors.ts";
import { ApiError, refusal } from "../api-error.ts";
import { type Draft, type Fields, fieldsOf, listOf, numberOf, plainText } from "../objects.ts";
import { jsonPatch } from "../patch.ts";
import type { Ask } from "../request.ts";
import { objectSelector } from "../selectors.ts";
import type { Store } from "../store.ts";
import { callWebhook } from "./call.ts";

/** What is about to happen to which object; there is no `object` on delete. */
type Review = { readonly operation: "CREATE" | "UPDATE" | "DELETE"; readonly object?: Draft; readonly oldObject?: Draft };

export function createAdmission(store: Store) {
  return {
    /** The object as the mutating webhooks leave it. Throws their refusal. */
    mutate: async (ask: Ask, review: Review): Promise<Draft | undefined> => {
      let { object } = review;
      for (const webhook of webhooksFor(store, "mutating", ask, review)) {
        const { patch } = await judge(store, webhook, ask, object ? { ...review, object } : review);
        if (object && patch) object = patched(webhook, object, Buffer.from(plainText(patch), "base64").toString());
      }
      return object;
    },
    /** Throws the refusal of a validating webhook. */
    check: async (ask: Ask, review: Review): Promise<void> => {
      const calls = webhooksFor(store, "validating", ask, review).map((webhook) => judge(store, webhook, ask, review));
      await Promise.allSettled(calls);
      await Promise.all(calls);
    },
  };
}

function failed(text: string): ApiError {
  return refusal("InternalError", `Internal error occurred: ${text}`, { causes: [{ message: text }] });
}

/** The webhook's response; an empty one when it failed and its policy is Ignore. Throws the refusal. */
async function judge(store: Store, webhook: Webhook, ask: Ask, review: Review): Promise<Fields> {
  const { name, failurePolicy } = webhook;
  let response: Fields;
  try {
    response = await callWebhook(store, webhook, requestOf(ask, review));
  } catch (error) {
    if (failurePolicy === "Ignore") return {};
    throw failed(`failed calling webhook "${name}": ${messageOf(error)}`);
  }
  ask.warnings.push(...listOf(response["warnings"]).map(String));
  if (response["allowed"] !== true) throw denied(name, fieldsOf(response["status"]));
  return response;
}

/** apiserver's plugin/webhook/errors.ToStatusErr. */
function denied(name: string, status: Fields): ApiError {
  const why = plainText(status["message"]) || plainText(status["reason"]);
  const message = `admission webhook "${name}" denied the request${why ? `: ${why}` : " without explanation"}`;
  return new ApiError({ ...status, message, code: Math.min(Math.max(numberOf(status["code"]) ?? 0, 400), 599) });
}

function patched({ name }: Webhook, object: Draft, patch: string): Draft {
  try {
    return jsonPatch(object, JSON.parse(patch)) as Draft;
  } catch {
    throw failed(`admission webhook "${name}" sent a patch that does not apply`);
  }
}

/** Kinds that the bodies of subresources are of. */
const BODY_KINDS: Readonly<Record<string, object>> = {
  scale: { group: "autoscaling", version: "v1", kind: "Scale" },
  eviction: { group: "policy", version: "v1", kind: "Eviction" },
};

/** Patches are told as updates, with UpdateOptions. */
const OPTIONS = { CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions" };

function requestOf(ask: Ask, { operation, object, oldObject }: Review): Fields {
  const { name, namespace, user: userInfo, dryRun } = ask;
  const { group, version, plural } = ask.kind;
  const kind = BODY_KINDS[ask.subresource] ?? { group, version, kind: ask.kind.kind };
  const resource = { group, version, resource: plural };
  const subResource = ask.subresource || undefined;
  const asAsked = { requestKind: kind, requestResource: resource, requestSubResource: subResource };
  const objects = { object: object ?? null, oldObject: oldObject ?? null };
  const asked = { dryRun: dryRun ? ["All"] : undefined, fieldManager: ask.query.get("fieldManager") ?? undefined };
  const options = { kind: OPTIONS[operation], apiVersion: "meta.k8s.io/v1", ...asked, ...(operation === "DELETE" && fieldsOf(ask.body)) };
  return { uid: randomUUID(), kind, resource, subResource, ...asAsked, name, namespace, operation, userInfo, ...objects, dryRun, options };
}

const GROUP = "admissionregistration.k8s.io";

/** In order of their configurations' names. Requests about webhook configurations concern none. */
function webhooksFor(store: Store, type: "mutating" | "validating", ask: Ask, { operation, object, oldObject }: Review): Webhook[] {
  if (ask.kind.group === GROUP) return [];
  // Of a Namespace its own labels count; other cluster-wide objects have none that could miss.
  const namespace = ask.resource === "namespaces" ? (object ?? oldObject) : store.get("namespaces", undefined, ask.namespace ?? "");
  const selects = (selector: object = {}, one?: Draft): boolean => one !== undefined && objectSelector(selector)(one.metadata.labels ?? {});
  return store
    .list(`${type}webhookconfigurations.${GROUP}`)
    .flatMap((configuration) => listOf(configuration["webhooks"]) as readonly Webhook[])
    .filter(
      (webhook) =>
        webhook.rules?.some((rule) => ruleMatches(rule, ask, operation)) &&
        (!namespace || selects(webhook.namespaceSelector, namespace)) &&
        (selects(webhook.objectSelector, object) || selects(webhook.objectSelector, oldObject)),
    );
}

function ruleMatches(rule: V1RuleWithOperations, { kind, subresource, namespace }: Ask, operation: string): boolean {
  const { scope = "*", operations = [], apiGroups = [], apiVersions = [], resources = [] } = rule;
  const below = subresource && `/${subresource}`;
  const has = (listed: readonly string[], ...wanted: readonly string[]): boolean => wanted.some((one) => listed.includes(one));
  return (
    (scope === "*" || (scope === "Namespaced") === (namespace !== undefined)) &&
    has(operations, operation, "*") &&
    has(apiGroups, kind.group, "*") &&
    has(apiVersions, kind.version, "*") &&
    has(resources, `${kind.plural}${below}`, `*${below}`, `${kind.plural}/*`, "*/*")
  );
}
