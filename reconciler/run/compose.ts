/** Composes a run from the environment, for the CronJob's entry and the function. */
import { randomUUID } from "node:crypto";
import type { Issue } from "../../infra/certs/act/revise.ts";
import type { Clock } from "../../infra/clock.ts";
import type { Configuration, Environment } from "../../infra/config/config.ts";
import { limitLists } from "../../infra/kubernetes/limit-lists.ts";
import { createPodHttp } from "../../infra/pod-http.ts";
import type { Machine } from "../../infra/machine.ts";
import { pushMetrics } from "../../infra/metrics/push.ts";
import { start } from "../../infra/start.ts";
import { createPrometheusClient } from "../../infra/prometheus/act/client.ts";
import { createCaInjection } from "./ca-injection.ts";
import { createChecker } from "../checks/act/ask-prometheus.ts";
import { createGates } from "../gates/act/tick-gates.ts";
import { createPhasedTick } from "../phased/act/phased-tick.ts";
import { createReferences } from "../scaling/act/gather-scaling.ts";
import { composeBudgets } from "../budget/act/compose.ts";
import { createMayDisrupt, createMayDownscale } from "../budget/act/may-disrupt.ts";
import { createNodeUpdates, type NodeUpdateOptions } from "../nodes/act/update-nodes.ts";
import type { RunInput } from "./session.ts";
import { createConcluder } from "../downscale/act/conclude-downscales.ts";
import { createBudgetKeeper } from "../budget/act/keep-budgets.ts";

export type Composition = Awaited<ReturnType<typeof compose>>;

/** Lists in flight, of all groups together. */
const LISTS_AT_ONCE = 32;
const DAY_MS = 86_400_000;
/** Half of the time that a tick gives its checks. */
const QUERY_MS = 5000;

/** Certificates are valid by the API server's clock. The generator is imported only when a certificate is issued. */
function issuerFor(
  { dnsNames, organization, validityMs }: Configuration["certificates"],
  { clock, generate }: { readonly clock: Clock; readonly generate: Machine["generate"] },
) {
  const issue: Issue = async () => {
    const make = generate ?? (await import("../../infra/certs/act/generate.ts")).generateCertificates;
    return await make({
      dnsNames,
      organization,
      validityDays: validityMs / DAY_MS,
      now: new Date(clock.now()),
    });
  };
  return { dnsNames, issue };
}

/** Throws `BadConfiguration`. */
export async function compose(env: Environment, machine: Machine) {
  const { configuration, log, metrics, clock, tracer, ...started } = await start(env, machine, {
    holdsLease: true,
    service: "zonewise-reconciler",
  });
  const cluster = limitLists(started.cluster, LISTS_AT_ONCE);
  const { namespace, namespaces, lease } = configuration;
  // Random, as a container that restarts in its pod has the same name as the one before it.
  const identity = `${configuration.identity ?? "zonewise"}_${randomUUID()}`;
  const { reserver, noteKind, emitEvents } = composeBudgets({ cluster, clock, log, identity });
  const podHttp = createPodHttp({
    timeoutMs: configuration.podTimeoutMs,
    clock,
    observer: metrics.podObserver,
    open: machine.open,
  });
  const prometheus = createPrometheusClient({
    timeoutMs: QUERY_MS,
    allowedHosts: configuration.prometheusAllowedHosts,
    clock,
    open: machine.open,
  });
  const checker = createChecker({ cluster, clock, prometheus });
  const mayDisrupt = createMayDisrupt(reserver, clock, metrics.budgets);
  const { clusterDomain, zoneTracker, phasedSuccessWhen: successWhen } = configuration;
  const run: Omit<RunInput, "stop"> = {
    cluster,
    clock,
    log,
    metrics,
    tracer,
    namespaces: namespaces === "*" ? [""] : namespaces,
    caInjection: createCaInjection({
      ...configuration.certificates,
      cluster,
      clock,
      log,
      metrics,
      namespace,
      issuer: configuration.certificates.selfSigned
        ? issuerFor(configuration.certificates, { clock, generate: machine.generate })
        : undefined,
    }),
    intervalMs: configuration.reconcileIntervalMs,
    budgetMs: configuration.timeBudgetMs,
    lease: {
      namespace,
      name: lease.name,
      durationMs: lease.durationSeconds * 1000,
      identity,
    },
    updateNodes: configuration.nodeUpdates.enabled ? createNodeUpdates(nodeUpdateOptions()) : undefined,
    concludeDownscales: createConcluder({ log, podHttp, clusterDomain, zoneTracker }),
    scaling: {
      references: createReferences(cluster),
      podHttp,
      clusterDomain,
      zoneTracker,
      mayDownscale: createMayDownscale(reserver, clock),
    },
    mayDisrupt,
    keepBudgets: createBudgetKeeper({ cluster, clock, log, metrics: metrics.budgets, emitEvents, noteKind }),
    checking: {
      checker,
      gates: createGates({ clock, log }),
    },
    phased: createPhasedTick({ clock, log, mayDisrupt, successWhen }),
  };
  function nodeUpdateOptions(): NodeUpdateOptions {
    const { namespace: shadows, ownNode, maxConcurrent, cron } = configuration.nodeUpdates;
    const intervalMs = configuration.reconcileIntervalMs;
    const defaultSpec = { maxConcurrent, ...(cron !== undefined && { window: { cron } }) };
    return { clock, log, metrics, namespace: shadows, ownNode, intervalMs, defaultSpec };
  }

  /** Pushes the metrics if that is configured; never rejects. */
  async function push(): Promise<void> {
    const { pushgatewayUrl: url } = configuration;
    if (url === undefined) return;
    // The job by which dashboards of the original select.
    const target = {
      url,
      job: `${namespace}/rollout-operator`,
      instance: `${namespace}/${lease.name}`,
      deadlineMs: 5000,
    };
    await pushMetrics(metrics, target).catch((error: unknown) =>
      log.warn("the metrics could not be pushed", { error }),
    );
  }
  return { push, run };
}
