/**
 * Injects the CA bundle into the webhook configurations (§7.6), and measures their failure policies (§9), beside the
 * ticks:
 *
 *   no certificate, or its renewal is overdue? make one -> list -> inject --> watch from the list --a configuration changed, or 30 s--> ...
 *
 * The configurations are watched, the Secret is read every 30 s: while neither has changed, an injection follows every 5
 * minutes. A watch is only a hint: every injection starts with a list. Without the right to watch, only the 30 s remain. The
 * list after our own injection finds nothing to do, which ends the cycle.
 */
import { failurePolicies } from "../../infra/certs/configurations.ts";
import { provideCertificate, type ProvideInput } from "../../infra/certs/act/provide-certificate.ts";
import {
  injectCaBundles,
  HOOK_RESOURCES,
  listConfigurations,
  logInjection,
  queryFor,
} from "../../infra/certs/act/inject.ts";
import type { Clock } from "../../infra/clock.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { hasCode } from "../../infra/errors.ts";
import type { Log, LogFields } from "../../infra/log.ts";
import type { Metrics } from "../../infra/metrics/metrics.ts";
import { secrets } from "../../infra/kubernetes/resources.ts";
import { startChangeWatch, type Watched } from "../snapshot/change-watch.ts";

export interface CaInjectionInput {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The namespace in the label of our configurations. */
  readonly namespace: string;
  readonly secretName: string;
  /** If false, configurations are only measured, not watched or changed. */
  readonly inject: boolean;
  /** How a certificate is made; undefined if somebody else provides it. */
  readonly issuer?: Pick<ProvideInput, "dnsNames" | "issue"> | undefined;
}

export type CaInjection = ReturnType<typeof createCaInjection>;

/** Milliseconds until the Secret is read again; without watches, between two injections, which cost four calls each. */
const INTERVAL_MS = 30_000;
/** Milliseconds between two injections while nothing changes: a watch may have died unnoticed. */
const UNCHANGED_MS = 5 * 60_000;
/** Least milliseconds between two injections: changes in between share the second. */
const PAUSE_MS = 1000;
/** Milliseconds after a failed injection or watch. */
const RETRY_MS = 5000;
const CALL_MS = 5000;

type Versions = ReadonlyMap<string, string>;
const NOTHING: Versions = new Map();

export function createCaInjection(input: CaInjectionInput) {
  const { cluster, clock, log, metrics, namespace, secretName, inject, issuer } = input;
  const logged = new Set<string>();
  let injectedAt = -Infinity;

  /** Resolves with the resourceVersions to watch from; undefined if it failed and should be retried soon. */
  async function injectOnce(signal: AbortSignal): Promise<Versions | undefined> {
    injectedAt = clock.monotonic();
    const call = { signal, deadlineMs: CALL_MS };
    try {
      if (!inject) {
        const { listed } = await listConfigurations(cluster, namespace, call);
        metrics.failurePolicies(failurePolicies(listed));
        await provide(call);
        return NOTHING;
      }
      await provide(call);
      const result = await injectCaBundles(cluster, { namespace, secretName }, call);
      metrics.failurePolicies(failurePolicies(result.listed));
      metrics.certificateExpiry(namespace, result.expiresAt);
      logInjection(log, result);
      return result.resourceVersions;
    } catch (error) {
      if (hasCode(error, "Cancelled")) return undefined;
      if (hasCode(error, "Forbidden")) {
        logOnce(
          "the CA bundle is not injected: the ServiceAccount may not list the webhook configurations, or not read or create the Secret",
          { error },
        );
        return NOTHING;
      }
      log.warn("the CA bundle could not be injected into webhook configurations", { error });
      return undefined;
    }
  }

  async function readSecretVersion(signal: AbortSignal): Promise<string | undefined> {
    const call = { signal, deadlineMs: CALL_MS };
    const secret = await cluster.get(secrets, { namespace, name: secretName }, call).catch(() => undefined);
    return secret?.metadata?.resourceVersion;
  }

  /** True if the Secret is the one that was injected, less than 5 minutes ago. */
  async function isInjected(version: string | undefined, signal: AbortSignal): Promise<boolean> {
    if (version === undefined || signal.aborted || clock.monotonic() - injectedAt >= UNCHANGED_MS) return false;
    return (await readSecretVersion(signal)) === version;
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

  const target = (plural: string): Watched => {
    const resource = HOOK_RESOURCES.find((one) => one.plural === plural);
    if (!resource) throw new Error(`${plural} are no webhook configurations`);
    return { resource, query: queryFor(namespace) };
  };

  return {
    /** Injects once, unless it did so less than 30 s ago; never rejects. */
    async once(signal: AbortSignal): Promise<void> {
      if (clock.monotonic() - injectedAt >= INTERVAL_MS) await injectOnce(signal);
    },
    /** Injects at every change until `signal` fires, every 5 minutes, and every 30 s without the right to watch; never rejects. */
    async follow(signal: AbortSignal): Promise<void> {
      const changes = startChangeWatch({ cluster, clock, signal, target, pauseMs: RETRY_MS, onEnd });
      while (!signal.aborted) {
        // Read before the injection: a Secret that changes meanwhile is another one.
        const injected = inject ? await readSecretVersion(signal) : undefined;
        const versions = await injectOnce(signal);
        changes.watchFrom(versions ?? NOTHING);
        await clock.sleep(PAUSE_MS, signal);
        let isChanged = await changes.wait((versions ? INTERVAL_MS : RETRY_MS) - PAUSE_MS);
        const isWatched = (): boolean => versions !== undefined && versions.size > 0 && changes.isWatching();
        while (!isChanged && isWatched() && (await isInjected(injected, signal)))
          isChanged = await changes.wait(INTERVAL_MS);
      }

      // The next injection finds changes between the end of a watch and the next watch.
      function onEnd(error: unknown): void {
        if (hasCode(error, "Forbidden"))
          logOnce(
            "webhook configurations are not watched, only listed every 30 s: the ServiceAccount may not watch them",
            { error },
          );
        else changes.wake();
      }
    },
  };
}
