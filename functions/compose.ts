/** Puts the webhooks together from the environment: what the single targets and the server of all of them share. */
import { randomUUID } from "node:crypto";
import type { LookupFunction } from "node:net";
import type { Clock } from "../infra/clock.ts";
import { connectCluster } from "../infra/cluster.ts";
import { readConfiguration, type WebhookConfiguration } from "../infra/config.ts";
import { loadConnection } from "../infra/connection.ts";
import { createLog, type Log, stdout } from "../infra/log.ts";
import { createMetrics, type Metrics } from "../infra/metrics.ts";
import { createPodHttp } from "../infra/pod-http.ts";
import { createTokenCheck } from "../infra/tokens.ts";
import { composeBudgets } from "../reconciler/compose-budgets.ts";
import type { Rim } from "./admission.ts";
import type { Webhook } from "./handler.ts";
import { recordInAnnotation, recordInTracker } from "./downscale-record.ts";
import { createNoDownscale } from "./no-downscale.ts";
import { createPodEviction } from "./pod-eviction.ts";
import { createPrepareDownscale } from "./prepare-downscale.ts";
import { createWork, type Work } from "./work.ts";
import { createZpdbValidation } from "./zpdb-validation.ts";

export interface Composition {
  readonly configuration: WebhookConfiguration;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly rim: Rim;
  readonly webhooks: readonly Webhook[];
  readonly work: Work;
}

/** Throws `BadConfiguration`. `lookup` resolves the names of pods instead of DNS. */
export async function compose(
  env: Readonly<Record<string, string | undefined>>,
  clock: Clock,
  lookup?: LookupFunction,
): Promise<Composition> {
  const configuration = readConfiguration(env);
  const { requestTimeoutMs, audience } = configuration.webhooks;
  const log = createLog({ level: configuration.logLevel, write: stdout.write, now: () => new Date(clock.now()) });
  const metrics = createMetrics();
  const connection = await loadConnection(configuration.connection);
  const { clientTimeoutMs: timeoutMs, rate } = configuration;
  const cluster = connectCluster(connection, { timeoutMs, rate, observer: metrics.observer, clock });
  const authenticate =
    audience === undefined ? undefined : createTokenCheck(connection, { audience, timeoutMs, observer: metrics.observer, clock });
  const work = createWork();
  const podHttp = createPodHttp({
    timeoutMs: configuration.podTimeoutMs,
    clock,
    observer: metrics.podObserver,
    // Each request keeps to 32 by itself [4.8]: one group's silent pods must not keep another's from being told.
    atOnce: Number.POSITIVE_INFINITY,
    ...(lookup && { lookup }),
  });
  const tools = { cluster, clock };
  const record = configuration.useZoneTracker
    ? recordInTracker(tools, configuration.zoneTracker)
    : recordInAnnotation(tools, configuration.zoneTracker);
  const identity = `webhook_${configuration.identity ?? "zonewise"}_${randomUUID()}`;
  const budgets = composeBudgets({ cluster, clock, log, metrics: metrics.budgets, identity });
  return {
    work,
    configuration: configuration.webhooks,
    log,
    metrics,
    rim: { clock, log, metrics: metrics.webhooks, requestTimeoutMs, authenticate, work },
    webhooks: [
      createNoDownscale(tools),
      createPrepareDownscale({ ...tools, podHttp, work, clusterDomain: configuration.clusterDomain, record }),
      createPodEviction({ reserver: budgets.reserver, metrics: metrics.budgets }),
      createZpdbValidation(),
    ],
  };
}
