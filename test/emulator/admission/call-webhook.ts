/** Calls one webhook over TLS. */
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
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

/** Sends a review; resolves with the body of a 200 answer. Rejects otherwise, and after `timeoutMs`. */
export type PostReview = (
  url: URL,
  options: { readonly hostname?: string; readonly ca?: Buffer | string; readonly timeoutMs: number },
  data: string,
) => Promise<string>;

/**
 * Returns the review's `response`. Rejects if no valid response arrives within the webhook's timeout; the
 * message is the real server's.
 */
export async function callWebhook(
  store: Store,
  { clientConfig, timeoutSeconds = 10 }: Webhook,
  review: Fields,
  post: PostReview = postOverTls,
): Promise<Fields> {
  const { url, ...address } = addressOf(store, clientConfig);
  url.searchParams.set("timeout", `${timeoutSeconds}s`);
  const ca = clientConfig.caBundle && Buffer.from(clientConfig.caBundle, "base64");
  const data = JSON.stringify({ kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request: review });
  const answer = await post(url, { ...address, ...(ca && { ca }), timeoutMs: timeoutSeconds * 1000 }, data).catch(
    (error: Error) => {
      throw new Error(`failed to call webhook: ${error.message}`, { cause: error });
    },
  );
  const { kind, apiVersion, response } = fieldsOf(JSON.parse(answer));
  const uid = kind === "AdmissionReview" && apiVersion === "admission.k8s.io/v1" && dig(response, "uid");
  if (uid === review["uid"]) return fieldsOf(response);
  const [expected, actual] = [review["uid"], uid || ""].map((text) => JSON.stringify(text));
  throw new Error(`received invalid webhook response: expected response.uid=${expected}, got ${actual}`);
}

const postOverTls: PostReview = async (url, { timeoutMs, ...address }, data) => {
  const signal = AbortSignal.timeout(timeoutMs);
  const headers = { host: url.host, "content-type": "application/json" };
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const call = request(url, { ...address, headers, signal, method: "POST" }, resolve);
      call.on("error", reject).end(data);
    });
    const answer = await text(response);
    if (response.statusCode === 200) return answer;
    throw new Error(`an error on the server (${JSON.stringify(answer)}) has prevented the request from succeeding`);
  } catch (error) {
    throw signal.aborted ? new Error(`Post "${url.href}": context deadline exceeded`, { cause: error }) : error;
  }
};
