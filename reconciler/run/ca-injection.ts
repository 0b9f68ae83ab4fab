/**
 * Injects the CA bundle into the webhook configurations (§7.6), and measures their failure policies (§9), beside the
 * ticks, every 30 s:
 *
 *   no certificate, or its renewal is overdue? make one -> list the configurations -> inject
 */
import { failurePolicies } from "../../infra/certs/configurations.ts";
import { provideCertificate, type ProvideInput } from "../../infra/certs/act/provide-certificate.ts";
import { injectCaBundles, listConfigurations, logInjection } from "../../infra/certs/act/inject.ts";
import type { Clock } from "../../infra/clock.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { hasCode } from "../../infra/errors.ts";
import type { Log, LogFields } from "../../infra/log.ts";
import type { Metrics } from "../../infra/metrics/metrics.ts";

export interface CaInjectionInput {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The namespace in the label of our configurations. */
  readonly namespace: string;
  readonly secretName: string;
  /** If false, configurations are only measured, not changed. */
  readonly inject: boolean;
  /** How a certificate is made; undefined if somebody else provides it. */
  readonly issuer?: Pick<ProvideInput, "dnsNames" | "issue"> | undefined;
}

export type CaInjection = ReturnType<typeof createCaInjection>;

/** Milliseconds between two injections; after one that failed. */
const INTERVAL_MS = 30_000;
const RETRY_MS = 5000;
const CALL_MS = 5000;

export function createCaInjection(input: CaInjectionInput) {
  const { cluster, clock, log, metrics, namespace, secretName, inject, issuer } = input;
  const logged = new Set<string>();
  let injectedAt = -Infinity;

  /** Resolves with false if it failed and should be retried soon. */
  async function injectOnce(signal: AbortSignal): Promise<boolean> {
    injectedAt = clock.monotonic();
    const call = { signal, deadlineMs: CALL_MS };
    try {
      if (!inject) {
        metrics.failurePolicies(failurePolicies(await listConfigurations(cluster, namespace, call)));
        await provide(call);
        return true;
      }
      await provide(call);
      const result = await injectCaBundles(cluster, { namespace, secretName }, call);
      metrics.failurePolicies(failurePolicies(result.listed));
      metrics.certificateExpiry(namespace, result.expiresAt);
      logInjection(log, result);
      return true;
    } catch (error) {
      if (hasCode(error, "Cancelled")) return false;
      if (hasCode(error, "Forbidden")) {
        logOnce(
          "the CA bundle is not injected: the ServiceAccount may not list the webhook configurations, or not read or create the Secret",
          { error },
        );
        return true;
      }
      log.warn("the CA bundle could not be injected into webhook configurations", { error });
      return false;
    }
  }

  async function provide(call: Call & { readonly signal: AbortSignal }): Promise<void> {
    if (!issuer) return;
    const place = { cluster, clock, log, namespace, secretName };
    const provided = await provideCertificate({ ...issuer, ...place, inject, stop: call.signal }, call).catch(leave);
    if (provided === "made") log.info("the certificate of the webhooks was made", { secret: secretName });
    if (provided === "overdue")
      logOnce("the certificate job is overdue: the reconciler renews the certificate", { secret: secretName });
  }

  /** What is stored is injected and measured all the same: the alert of the expiry needs its metric just then. */
  function leave(error: unknown): "left" {
    if (hasCode(error, "Cancelled")) throw error;
    if (hasCode(error, "Forbidden"))
      logOnce(
        "the reconciler does not provide the certificate of the webhooks: the ServiceAccount may not read, create or replace the Secret",
        { error },
      );
    else log.warn("the certificate of the webhooks could not be provided", { error, secret: secretName });
    return "left";
  }

  function logOnce(message: string, fields: LogFields): void {
    if (!logged.has(message)) log.info(message, fields);
    logged.add(message);
  }

  return {
    /** Injects once, unless it did so less than 30 s ago; never rejects. */
    async once(signal: AbortSignal): Promise<void> {
      if (clock.monotonic() - injectedAt >= INTERVAL_MS) await injectOnce(signal);
    },
    /** Injects every 30 s until `signal` fires; never rejects. */
    async follow(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) await clock.sleep((await injectOnce(signal)) ? INTERVAL_MS : RETRY_MS, signal);
    },
  };
}
