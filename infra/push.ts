/** Metrics of a short run, handed to a Prometheus Pushgateway. */
import { RolloutError } from "./errors.ts";
import type { Metrics } from "./metrics.ts";

export interface PushTarget {
  readonly url: string;
  readonly job: string;
  /** The installation, not the pod: a pod's name would leave dead series behind with each run. */
  readonly instance: string;
  readonly deadlineMs: number;
}

/** Replaces what this job and instance pushed before (PUT); rejects with a RolloutError when that fails, which is no reason to fail the run. */
export async function pushMetrics(metrics: Metrics, { url, job, instance, deadlineMs }: PushTarget): Promise<void> {
  // In base64, as a slash in a value does not survive otherwise: https://github.com/prometheus/pushgateway#url
  const grouping = `job@base64/${base64(job)}/instance@base64/${base64(instance)}`;
  const address = `${url.replace(/\/+$/, "")}/metrics/${grouping}`;
  const { status, text } = await put(address, metrics.contentType, await metrics.render(), deadlineMs);
  if (status >= 300) throw new RolloutError("ServerError", `push metrics: ${text.trim()} (${status})`, { status });
}

async function put(address: string, contentType: string, body: string, deadlineMs: number): Promise<{ status: number; text: string }> {
  try {
    const signal = AbortSignal.timeout(deadlineMs);
    const answer = await fetch(address, { method: "PUT", headers: { "content-type": contentType }, body, signal });
    return { status: answer.status, text: await answer.text() };
  } catch (cause) {
    const timeout = cause instanceof Error && cause.name === "TimeoutError";
    throw new RolloutError(timeout ? "Timeout" : "Unreachable", `push metrics: no answer from ${address}`, { cause });
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64url");
}
