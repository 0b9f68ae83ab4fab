import type { AdmissionRequest, Answer, RequestContext, Webhook } from "../../functions/http/webhook.ts";

/** In the form that the API server sends. */
export const request = {
  uid: "u-1",
  operation: "CREATE",
  subResource: "eviction",
  namespace: "shop",
  name: "web-0",
  dryRun: true,
  kind: { group: "policy", version: "v1", kind: "Eviction" },
  resource: { group: "", version: "v1", resource: "pods" },
  userInfo: { username: "alice" },
  object: { kind: "Eviction" },
};

/** A webhook with this handler, which answers errors with "not now". */
export function webhookOf(handle: (request: AdmissionRequest, context: RequestContext) => Promise<Answer>): Webhook {
  return {
    name: "podEviction",
    paths: ["/admission/pod-eviction", "/pods/eviction"],
    handle,
    onFault: (error) => ({
      allowed: false,
      code: 429,
      message: "not now",
      reason: "Fault",
      log: { was: String(error) },
    }),
  };
}

export const allowing = webhookOf(async () => ({ allowed: true, reason: "Fine" }));
