import type { AdmissionRequest, Answer, RequestContext, Webhook } from "../../functions/http/webhook.ts";
import { review } from "../builders/reviews.ts";

/** In the form that the API server sends. */
export const request = {
  ...review("Eviction", "web-0", { uid: "u-1", namespace: "shop", userInfo: { username: "alice" } }),
  dryRun: true,
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
