/** Calls one webhook over TLS. */
import type { IncomingMessage } from "node:http";
import { request, type RequestOptions } from "node:https";
import { text } from "node:stream/consumers";
import type { V1ValidatingWebhook as Webhook } from "@kubernetes/client-node";
import { dig, type Fields, fieldsOf, textOf } from "../objects.ts";
import type { Store } from "../store.ts";

/**
 * The webhook's URL, and the host to connect to if a Service is named. That Service must be of type
 * ExternalName.
 */
function addressOf(store: Store, { url, service }: Webhook["clientConfig"]): { url: URL; hostname?: string } {
  if (!service) return { url: new URL(url ?? "") };
  const { name, namespace, path = "/", port = 443 } = service;
  const hostname = textOf(dig(store.get("services", namespace, name), "spec", "externalName"));
  if (hostname === undefined) throw new Error(`failed to call webhook: no endpoints available for service "${name}"`);
  return { url: new URL(path, `https://${name}.${namespace}.svc:${port}`), hostname };
}

/**
 * Returns the review's `response`. Rejects if no valid response arrives within the webhook's timeout; the
 * message is the real server's.
 */
export async function callWebhook(
  store: Store,
  { clientConfig, timeoutSeconds = 10 }: Webhook,
  review: Fields,
): Promise<Fields> {
  const { url, ...address } = addressOf(store, clientConfig);
  url.searchParams.set("timeout", `${timeoutSeconds}s`);
  const signal = AbortSignal.timeout(timeoutSeconds * 1000);
  const headers = { host: url.host, "content-type": "application/json" };
  const ca = clientConfig.caBundle && Buffer.from(clientConfig.caBundle, "base64");
  const data = JSON.stringify({ kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request: review });
  const answer = await post(url, { ...address, ...(ca && { ca }), headers, signal }, data).catch((error: Error) => {
    const reason = signal.aborted ? `Post "${url.href}": context deadline exceeded` : error.message;
    throw new Error(`failed to call webhook: ${reason}`, { cause: error });
  });
  const { kind, apiVersion, response } = fieldsOf(JSON.parse(answer));
  const uid = kind === "AdmissionReview" && apiVersion === "admission.k8s.io/v1" && dig(response, "uid");
  if (uid === review["uid"]) return fieldsOf(response);
  const [expected, actual] = [review["uid"], uid || ""].map((text) => JSON.stringify(text));
  throw new Error(`received invalid webhook response: expected response.uid=${expected}, got ${actual}`);
}

/** Returns the body of a 200 response; rejects otherwise. */
async function post(url: URL, options: RequestOptions, data: string): Promise<string> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const call = request(url, { ...options, method: "POST" }, resolve);
    call.on("error", reject).end(data);
  });
  const answer = await text(response);
  if (response.statusCode === 200) return answer;
  throw new Error(`an error on the server (${JSON.stringify(answer)}) has prevented the request from succeeding`);
}
