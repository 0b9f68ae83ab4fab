/** Pushes the metrics of a run to a Prometheus Pushgateway. */
import { RolloutError } from "../errors.ts";
import type { Metrics } from "./metrics.ts";

export interface PushTarget {
  readonly url: string;
  readonly job: string;
  /** Names the installation, not the pod: with a pod's name, each run would leave stale series. */
  readonly instance: string;
  readonly deadlineMs: number;
}

/**
 * Replaces the earlier metrics of this job and instance (PUT); rejects with a RolloutError, which should not fail the
 * run. Credentials in the URL are sent as Basic authentication and appear in no message.
 */
export async function pushMetrics(metrics: Metrics, { url, job, instance, deadlineMs }: PushTarget): Promise<void> {
  // In base64, because of slashes: https://github.com/prometheus/pushgateway#url
  const grouping = `job@base64/${base64(job)}/instance@base64/${base64(instance)}`;
  const { address, authorization } = splitCredentials(`${url.replace(/\/+$/, "")}/metrics/${grouping}`);
  const headers = { "content-type": metrics.contentType, ...(authorization && { authorization }) };
  const { status, text } = await put(address, { headers, body: await metrics.render(), deadlineMs });
  if (status >= 300)
    throw new RolloutError("ServerError", `push metrics: ${text.trim().slice(0, 500)} (${status})`, { status });
}

interface Put {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly deadlineMs: number;
}

async function put(address: string, { headers, body, deadlineMs }: Put): Promise<{ status: number; text: string }> {
  try {
    const answer = await fetch(address, { method: "PUT", headers, body, signal: AbortSignal.timeout(deadlineMs) });
    return { status: answer.status, text: await answer.text() };
  } catch (cause) {
    const timeout = cause instanceof Error && cause.name === "TimeoutError";
    throw new RolloutError(timeout ? "Timeout" : "Unreachable", `push metrics: no answer from ${address}`, { cause });
  }
}

/** Splits off the credentials: fetch refuses a URL with credentials and shows them in its error. */
function splitCredentials(url: string): { readonly address: string; readonly authorization: string | undefined } {
  const address = new URL(url);
  const { username, password } = address;
  address.username = "";
  address.password = "";
  const pair = `${decode(username)}:${decode(password)}`;
  return {
    address: address.href,
    authorization: pair === ":" ? undefined : `Basic ${Buffer.from(pair).toString("base64")}`,
  };
}

/** Decodes the user or password of a URL; unchanged if it is not percent-encoded. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64url");
}
