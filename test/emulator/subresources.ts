/** Subresources that act instead of showing the object: eviction, token. */
import { jsonAnswer } from "./answer.ts";
import type { Api } from "./api.ts";
import { notAllowed, notFound, refusal } from "./api-error.ts";
import { evict } from "./eviction.ts";
import { dig, fieldsOf, listOf, numberOf, timestamp } from "./objects.ts";
import { get } from "./read.ts";
import type { Answer, Ask } from "./request.ts";
import { viewOf } from "./views.ts";
import { bodyOf } from "./body.ts";

type Handler = (api: Api, ask: Ask) => Answer | Promise<Answer>;

const CREATES: Readonly<Record<string, Handler>> = {
  eviction: evict,
  token: async (api, ask) => {
    const request = bodyOf(ask);
    const seconds = numberOf(dig(request, "spec", "expirationSeconds")) ?? 3600;
    if (!api.store.get("serviceaccounts", ask.namespace, ask.name)) throw notFound("serviceaccounts", ask.name);
    if (seconds < 600)
      throw refusal(
        "Invalid",
        `TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: ${seconds}: may not specify a duration less than 10 minutes`,
      );
    const audiences = listOf(dig(request, "spec", "audiences")).map(String);
    const { token, expires } = await api.tokens.issue(ask.namespace ?? "", ask.name, audiences, seconds);
    return jsonAnswer(201, {
      kind: "TokenRequest",
      apiVersion: "authentication.k8s.io/v1",
      metadata: { name: ask.name, namespace: ask.namespace, creationTimestamp: timestamp(api.clock.now()) },
      spec: { ...fieldsOf(request["spec"]), expirationSeconds: seconds },
      status: { token, expirationTimestamp: timestamp(expires) },
    });
  },
};

export function createBelow(api: Api, ask: Ask): Answer | Promise<Answer> {
  const handler = CREATES[ask.subresource];
  if (!handler) throw notAllowed();
  return handler(api, ask);
}

export function getBelow(api: Api, ask: Ask, at?: number): Answer {
  if (ask.subresource === "status") return get(api, ask, at);
  if (ask.subresource !== "scale") throw notAllowed();
  const object = api.store.get(ask.resource, ask.namespace, ask.name);
  const view = viewOf(ask.kind, ask.subresource);
  if (!object || !view) throw notFound(ask.resource, ask.name);
  return jsonAnswer(200, view.read(object));
}
