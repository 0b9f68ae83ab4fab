/** Admission webhooks: mutating ones in turn, validating ones side by side. A webhook that fails is refused or passed over as its policy says. */
import { randomUUID } from "node:crypto";
import type { Admission, Review } from "../api.ts";
import { ApiError, refusal } from "../api-error.ts";
import { isFields, plainText } from "../objects.ts";
import type { Draft, Fields } from "../objects.ts";
import { jsonPatch } from "../patch.ts";
import type { Ask } from "../request.ts";
import type { Store } from "../store.ts";
import { callWebhook, Invalid } from "./call.ts";
import type { Verdict } from "./call.ts";
import { webhooksFor } from "./matching.ts";
import type { Webhook } from "./matching.ts";

export function createAdmission(store: Store): Admission {
  return {
    mutate: async (ask, review) => {
      let { object } = review;
      for (const webhook of webhooksFor(store, "mutating", ask, review)) {
        const verdict = await verdictOf(store, webhook, ask, { ...review, ...(object && { object }) });
        if (object && verdict?.patch !== undefined) object = patched(webhook, object, verdict.patch);
      }
      return object;
    },
    check: async (ask, review) => {
      const calls = webhooksFor(store, "validating", ask, review).map((webhook) => verdictOf(store, webhook, ask, review));
      await Promise.allSettled(calls);
      await Promise.all(calls);
    },
  };
}

/** Undefined when the webhook failed and its policy is Ignore. Throws the refusal. */
async function verdictOf(store: Store, webhook: Webhook, ask: Ask, review: Review): Promise<Verdict | undefined> {
  let verdict: Verdict;
  try {
    verdict = await callWebhook(store, webhook, requestOf(ask, review));
  } catch (error) {
    if (webhook.failsOpen) return undefined;
    throw failed(webhook, error);
  }
  ask.warnings.push(...verdict.warnings);
  if (!verdict.allowed) throw denied(webhook, verdict);
  return verdict;
}

/** apiserver's plugin/webhook/errors.ToStatusErr. */
function denied(webhook: Webhook, { status }: Verdict): ApiError {
  const by = `admission webhook "${webhook.name}" denied the request`;
  const why = plainText(status["message"]) || plainText(status["reason"]);
  const code = Math.max(Number(status["code"] ?? 0), 400);
  return new ApiError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    ...status,
    status: "Failure",
    message: why ? `${by}: ${why}` : `${by} without explanation`,
    code,
  });
}

function failed(webhook: Webhook, error: unknown): ApiError {
  const message = error instanceof Error ? error.message : String(error);
  const how = error instanceof Invalid ? `received invalid webhook response: ${message}` : `failed to call webhook: ${message}`;
  const text = `failed calling webhook "${webhook.name}": ${how}`;
  return refusal("InternalError", `Internal error occurred: ${text}`, { causes: [{ message: text }] });
}

function patched(webhook: Webhook, { apiVersion, kind, ...object }: Draft, patch: string): Draft {
  try {
    const result = jsonPatch({ apiVersion, kind, ...object }, JSON.parse(patch));
    if (isFields(result) && isFields(result["metadata"])) return { ...result, apiVersion, kind, metadata: result["metadata"] };
  } catch {
    // told below
  }
  throw refusal("InternalError", `Internal error occurred: admission webhook "${webhook.name}" sent a patch that does not apply`);
}

/** Kinds that the bodies of subresources are of. */
const BODY_KINDS: Readonly<Record<string, { group: string; version: string; kind: string }>> = {
  scale: { group: "autoscaling", version: "v1", kind: "Scale" },
  eviction: { group: "policy", version: "v1", kind: "Eviction" },
};

function requestOf(ask: Ask, review: Review): Fields {
  const { group, version, plural } = ask.kind;
  const kind = BODY_KINDS[ask.subresource] ?? { group, version, kind: ask.kind.kind };
  const resource = { group, version, resource: plural };
  const { subresource } = ask;
  return {
    uid: randomUUID(),
    kind,
    resource,
    ...(subresource && { subResource: subresource }),
    requestKind: kind,
    requestResource: resource,
    ...(subresource && { requestSubResource: subresource }),
    name: ask.name,
    ...(ask.namespace !== undefined && { namespace: ask.namespace }),
    operation: review.operation,
    userInfo: ask.user,
    object: review.object ?? null,
    oldObject: review.oldObject ?? null,
    dryRun: ask.dryRun,
    options: review.options,
  };
}
