/** Metrics of a short run, handed to a Prometheus Pushgateway. */
import { RolloutError } from "../errors.ts";
import type { Metrics } from "./metrics.ts";

export interface PushTarget {
  readonly url: string;
  readonly job: string;
  /** The installation, not the pod: a pod's name would leave dead series behind with each run. */
  readonly instance: string;
  readonly deadlineMs: number;
}

/**
 * Replaces what this job and instance pushed before (PUT); rejects with a RolloutError when that fails, which is no reason to fail the run.
 * Credentials in the URL are sent as Basic authentication, and are in no message.
 */
export async function pushMetrics(metrics: Metrics, { url, job, instance, deadlineMs }: PushTarget): Promise<void> {
  // In base64, as a slash in a value does not survive otherwise: https://github.com/prometheus/pushgateway#url
  const grouping = `job@base64/${base64(job)}/instance@base64/${base64(instance)}`;
  const { address, authorization } = splitCredentials(`${url.replace(/\/+$/, "")}/metrics/${grouping}`);
  const headers = { "content-type": metrics.contentType, ...(authorization && { authorization }) };
  const { status, text } = await put(address, headers, await metrics.render(), deadlineMs);
  if (status >= 300) throw new RolloutError("ServerError", `push metrics: ${text.trim().slice(0, 500)} (${status})`, { status });
}

async function put(
  address: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  deadlineMs: number,
): Promise<{ status: number; text: string }> {
  try {
    const answer = await fetch(address, { method: "PUT", headers, body, signal: AbortSignal.timeout(deadlineMs) });
    return { status: answer.status, text: await answer.text() };
  } catch (cause) {
    const timeout = cause instanceof Error && cause.name === "TimeoutError";
    throw new RolloutError(timeout ? "Timeout" : "Unreachable", `push metrics: no answer from ${address}`, { cause });
  }
}

/** fetch refuses a URL with credentials, and its error shows them. */
function splitCredentials(url: string): { readonly address: string; readonly authorization: string | undefined } {
  const address = new URL(url);
  const { username, password } = address;
  address.username = "";
  address.password = "";
  const pair = `${decode(username)}:${decode(password)}`;
  return { address: address.href, authorization: pair === ":" ? undefined : `Basic ${Buffer.from(pair).toString("base64")}` };
}

/** Of a URL's user or password; as it is written if its percent signs encode nothing. */
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
