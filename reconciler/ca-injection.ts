/**
 * Injects the CA bundle into the webhook configurations (§7.6), and measures their failure policies (§9), beside the ticks:
 *
 *   no certificate? make it -> list -> inject --> watch from the list --a configuration changed, or 30 s--> ...
 *
 * A watch is only a hint: the truth is always a fresh list. Without the right to watch, the 30 s remain. The look after an injection of our
 * own finds nothing to do, and that ends the round.
 */
import { failurePolicies } from "../infra/certs/configurations.ts";
import { type FirstCertificate, issueFirstCertificate } from "../infra/certs/first-certificate.ts";
import { injectCaBundles, HOOK_RESOURCES, listConfigurations, queryFor } from "../infra/certs/inject.ts";
import type { Clock } from "../infra/clock.ts";
import type { Call, Cluster } from "../infra/kubernetes/cluster.ts";
import { hasCode } from "../infra/errors.ts";
import type { Log } from "../infra/log.ts";
import type { Metrics } from "../infra/metrics/metrics.ts";
import { startChangeWatch, type Watched } from "./change-watch.ts";

export interface CaInjectionInput {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The namespace that configurations are labelled with. */
  readonly namespace: string;
  readonly secretName: string;
  /** False leaves the bundles alone: configurations are measured, and not watched. */
  readonly inject: boolean;
  /** How to fill a Secret that is missing or empty; undefined where somebody else brings the certificate. */
  readonly firstCertificate?: Pick<FirstCertificate, "dnsNames" | "issue"> | undefined;
}

export interface CaInjection {
  /** One look, if the last one is long enough ago; never rejects. */
  readonly once: (signal: AbortSignal) => Promise<void>;
  /** Looks at every change and every 30 s, until `signal` fires; never rejects. */
  readonly follow: (signal: AbortSignal) => Promise<void>;
}

/** A look at the Secret and every webhook configuration costs four calls: this long apart when no change is heard of. */
const EVERY_MS = 30_000;
/** Two looks are at least this long apart: changes that come meanwhile share the second. */
const PAUSE_MS = 1000;
/** After a look or a watch that failed. */
const RETRY_MS = 5000;
const CALL_MS = 5000;

type Versions = ReadonlyMap<string, string>;
const NOTHING: Versions = new Map();

export function createCaInjection(input: CaInjectionInput): CaInjection {
  const { cluster, clock, log, metrics, namespace, secretName, inject, firstCertificate } = input;
  const told = new Set<string>();
  let lookedAt = -Infinity;

  /** Resolves with where to watch from; undefined if the look failed and is worth another soon. */
  async function look(signal: AbortSignal): Promise<Versions | undefined> {
    lookedAt = clock.monotonic();
    const call = { signal, deadlineMs: CALL_MS };
    try {
      if (!inject) {
        const { listed } = await listConfigurations(cluster, namespace, call);
        metrics.failurePolicies(failurePolicies(listed));
        await issueFirst(call);
        return NOTHING;
      }
      await issueFirst(call);
      const { listed, resourceVersions, expiresAt, patched, failed, superseded } = await injectCaBundles(
        cluster,
        { namespace, secretName },
        call,
      );
      metrics.failurePolicies(failurePolicies(listed));
      metrics.certificateExpiry(namespace, expiresAt);
      if (patched.length > 0) log.info("webhook configurations were given the CA bundle", { names: patched });
      for (const { name, error } of [...failed, ...superseded])
        log.warn("a webhook configuration could not be given the CA bundle", { name, error });
      return resourceVersions;
    } catch (error) {
      if (hasCode(error, "Cancelled")) return undefined;
      if (hasCode(error, "Forbidden")) {
        tellOnce(
          "webhook configurations are not looked after: the ServiceAccount may not list them, or not read or make the Secret",
          error,
        );
        return NOTHING;
      }
      log.warn("the webhook configurations could not be looked after", { error });
      return undefined;
    }
  }

  async function issueFirst(call: Call): Promise<void> {
    if (!firstCertificate) return;
    const written = await issueFirstCertificate(cluster, { ...firstCertificate, namespace, secretName, now: clock.now() }, call);
    if (written) log.info("the certificate of the webhooks was made", { secret: secretName });
  }

  function tellOnce(message: string, error: unknown): void {
    if (!told.has(message)) log.info(message, { error });
    told.add(message);
  }

  const target = (plural: string): Watched => {
    const resource = HOOK_RESOURCES.find((one) => one.plural === plural);
    if (!resource) throw new Error(`${plural} are no webhook configurations`);
    return { resource, query: queryFor(namespace) };
  };

  return {
    async once(signal) {
      if (clock.monotonic() - lookedAt >= EVERY_MS) await look(signal);
    },
    async follow(signal) {
      const changes = startChangeWatch({ cluster, clock, signal, target, pauseMs: RETRY_MS, onEnd });
      while (!signal.aborted) {
        const versions = await look(signal);
        changes.watchFrom(versions ?? NOTHING);
        await clock.sleep(PAUSE_MS, signal);
        await changes.wait((versions ? EVERY_MS : RETRY_MS) - PAUSE_MS);
      }

      // What changed between the end of a watch and the next one is found by a look.
      function onEnd(error: unknown): void {
        if (hasCode(error, "Forbidden"))
          tellOnce("webhook configurations are not watched, only looked at every 30 s: the ServiceAccount may not watch them", error);
        else changes.wake();
      }
    },
  };
}
