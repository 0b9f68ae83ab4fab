/** What a run does for the webhooks on the side: their CA bundles stay ours [7.6], and their failure policies are measured [9]. */
import { failurePolicies } from "../infra/certs/configurations.ts";
import { healCaBundles, listConfigurations } from "../infra/certs/heal.ts";
import type { Clock } from "../infra/clock.ts";
import type { Cluster } from "../infra/cluster.ts";
import { hasCode } from "../infra/errors.ts";
import type { Log } from "../infra/log.ts";
import type { Metrics } from "../infra/metrics.ts";

export interface WebhooksInput {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The namespace that configurations are labelled with. */
  readonly namespace: string;
  readonly secretName: string;
  /** False leaves the bundles alone. */
  readonly inject: boolean;
}

/** A look at every webhook configuration costs three calls: this long apart, two of them. */
const EVERY_MS = 30_000;
/** The next tick waits for it. */
const CALL_MS = 5000;

/** Looks after the webhook configurations if the last look is long enough ago; never rejects. */
export type TendWebhooks = (signal: AbortSignal) => Promise<void>;

export function tendWebhooks({ cluster, clock, log, metrics, namespace, secretName, inject }: WebhooksInput): TendWebhooks {
  let lookedAt = -Infinity;
  let toldForbidden = false;
  return async (signal) => {
    if (clock.monotonic() - lookedAt < EVERY_MS) return;
    lookedAt = clock.monotonic();
    const call = { signal, deadlineMs: CALL_MS };
    try {
      if (!inject) return metrics.failurePolicies(failurePolicies(await listConfigurations(cluster, namespace, call)));
      const { listed, expiresAt, patched, failed, outrun } = await healCaBundles(cluster, { namespace, secretName }, call);
      metrics.failurePolicies(failurePolicies(listed));
      metrics.certificateExpiry(namespace, expiresAt);
      if (patched.length > 0) log.info("webhook configurations were given the CA bundle", { names: patched });
      for (const { name, error } of [...failed, ...outrun])
        log.warn("a webhook configuration could not be given the CA bundle", { name, error });
    } catch (error) {
      if (hasCode(error, "Cancelled")) return;
      if (!hasCode(error, "Forbidden")) return log.warn("the webhook configurations could not be looked after", { error });
      if (!toldForbidden)
        log.info("webhook configurations are not looked after: the ServiceAccount may not list them, or not read the Secret", { error });
      toldForbidden = true;
    }
  };
}
