/** Pushes the metrics of a run to a Prometheus Pushgateway. */
import { credentialsOf, redactUrl, withoutCredentials } from "../credentials.ts";
import { RolloutError } from "../errors.ts";
import { exchange, type Redirect, withinDeadline } from "../http.ts";
import type { Metrics } from "./metrics.ts";
import { TEXT_TYPE } from "./registry.ts";

interface PushTarget {
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
export async function pushMetrics(
  metrics: Metrics,
  { url, job, instance, deadlineMs: timeoutMs }: PushTarget,
): Promise<void> {
  // In base64, because of slashes: https://github.com/prometheus/pushgateway#url
  const grouping = `job@base64/${base64(job)}/instance@base64/${base64(instance)}`;
  const address = new URL(`${url.replace(/\/+$/, "")}/metrics/${grouping}`);
  const { authorization } = credentialsOf(address);
  const headers = { "content-type": TEXT_TYPE };
  const body = await metrics.render();
  const { status, text } = await withinDeadline(`push metrics to ${redactUrl(address)}`, { timeoutMs }, (signal) =>
    exchange(withoutCredentials(address), {
      method: "PUT",
      headers: { ...headers, ...(authorization !== undefined && { authorization }) },
      body,
      signal,
      // RFC 9110, 15.4: 303 is followed by GET. The credentials are those of the host that was configured.
      onRedirect: ({ status, from, to }: Redirect) => ({
        ...(status === 303 && { method: "GET", body: undefined }),
        ...(to.origin !== from.origin && { headers }),
      }),
    }),
  );
  if (status >= 300)
    throw new RolloutError("ServerError", `push metrics: ${text.trim().slice(0, 500)} (${status})`, { status });
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64url");
}
