/** One call of one webhook over TLS. */
import { Agent, request } from "node:https";
import { dig, fieldsOf, listOf, numberOf, textOf } from "../objects.ts";
import type { Fields } from "../objects.ts";
import type { Store } from "../store.ts";
import type { Webhook } from "./matching.ts";

export interface Verdict {
  readonly allowed: boolean;
  /** The webhook's own Status, as far as it gave one. */
  readonly status: Fields;
  readonly warnings: readonly string[];
  /** JSON Patch as text, when the webhook changes the object. */
  readonly patch: string | undefined;
}

interface Address {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** The name asked for in TLS. */
  readonly servername: string;
}

const agent = new Agent({ keepAlive: true });

/** The webhook's URL, or its Service: as on the test cluster, of type ExternalName. Throws with the real server's words. */
function addressOf(store: Store, webhook: Webhook): Address {
  const config = dig(webhook.fields, "clientConfig");
  const url = textOf(dig(config, "url"));
  if (url !== undefined) {
    const { hostname, port, pathname } = new URL(url);
    return { host: hostname, port: Number(port || 443), path: pathname, servername: hostname };
  }
  const name = textOf(dig(config, "service", "name")) ?? "";
  const namespace = textOf(dig(config, "service", "namespace")) ?? "";
  const service = store.get("services", namespace, name);
  if (!service) throw new Error(`service "${name}" not found`);
  const host = textOf(dig(service, "spec", "externalName"));
  if (host === undefined) throw new Error(`no endpoints available for service "${name}"`);
  const port = numberOf(dig(config, "service", "port")) ?? 443;
  return { host, port, path: textOf(dig(config, "service", "path")) ?? "/", servername: `${name}.${namespace}.svc` };
}

/** Rejects when no usable answer came in time; the message is what the real server would say. */
export async function callWebhook(store: Store, webhook: Webhook, review: Fields): Promise<Verdict> {
  const { servername, path, ...address } = addressOf(store, webhook);
  const { timeoutSeconds } = webhook;
  const ca = textOf(dig(webhook.fields, "clientConfig", "caBundle"));
  const target = `${path}?timeout=${timeoutSeconds}s`;
  const data = JSON.stringify({ kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request: review });
  const { code, text } = await post(
    { ...address, servername, path: target },
    ca && Buffer.from(ca, "base64").toString(),
    data,
    timeoutSeconds,
  );
  if (code !== 200) throw new Error(unsuccessful(code, text));
  const answer: unknown = parse(text);
  const version = dig(answer, "apiVersion");
  if (dig(answer, "kind") !== "AdmissionReview" || version !== "admission.k8s.io/v1")
    throw new Invalid(
      `expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ${String(version)}, Kind=${String(dig(answer, "kind"))}`,
    );
  const response = fieldsOf(dig(answer, "response"));
  if (response["uid"] !== review["uid"])
    throw new Invalid(`expected response.uid=${JSON.stringify(review["uid"])}, got ${JSON.stringify(response["uid"] ?? "")}`);
  const patch = textOf(response["patch"]);
  return {
    allowed: response["allowed"] === true,
    status: fieldsOf(response["status"]),
    warnings: listOf(response["warnings"]).map(String),
    patch: patch === undefined ? undefined : Buffer.from(patch, "base64").toString(),
  };
}

/** An answer that came, but is none. */
export class Invalid extends Error {
  override readonly name = "Invalid";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`couldn't get version/kind; json parse error: ${error instanceof Error ? error.message : ""}`, { cause: error });
  }
}

function unsuccessful(code: number, text: string): string {
  if (code >= 500) return `an error on the server (${JSON.stringify(text)}) has prevented the request from succeeding`;
  return `the server responded with the status code ${code} but did not return more information`;
}

function post(address: Address, ca: string | undefined, data: string, timeoutSeconds: number): Promise<{ code: number; text: string }> {
  const { host, port, path, servername } = address;
  const url = `https://${servername}:${port}${path}`;
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(data),
    host: `${servername}:${port}`,
    accept: "application/json",
  };
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutSeconds * 1000);
    const fail = (error: Error): void => {
      const why = signal.aborted ? "context deadline exceeded" : error.message;
      reject(new Error(`Post ${JSON.stringify(url)}: ${why}`, { cause: error }));
    };
    const call = request({ agent, method: "POST", host, port, path, servername, headers, signal, ...(ca && { ca }) }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve({ code: response.statusCode ?? 0, text }));
      response.on("error", fail);
    });
    call.on("error", fail);
    call.end(data);
  });
}
