/** Composes the webhooks from the environment, for the single targets and for the server of all of them. */
import { randomUUID } from "node:crypto";
import type { LookupFunction } from "node:net";
import type { Environment, WebhookSettings } from "../infra/config/config.ts";
import type { Machine } from "../infra/machine.ts";
import type { Metrics } from "../infra/metrics/metrics.ts";
import { createPodHttp } from "../infra/pod-http.ts";
import { start } from "../infra/start.ts";
import { createTokenCheck } from "../infra/kubernetes/tokens.ts";
import { composeBudgets } from "../reconciler/budget/act/compose.ts";
import { routeWebhooks } from "./http/admission.ts";
import { type Handler, type Rim, createBodyReader, createBackgroundTasks } from "./http/rim.ts";
import type { Webhook } from "./http/webhook.ts";
import { recordInAnnotation, recordInTracker } from "./downscale/downscale-record.ts";
import { createNoDownscale } from "./downscale/no-downscale.ts";
import { createPodDeletion } from "./eviction/pod-deletion.ts";
import { createPodEviction } from "./eviction/pod-eviction.ts";
import { createPrepareDownscale } from "./downscale/prepare-downscale.ts";
import { createPhasedDefaults } from "./phased/phased-defaults.ts";
import { createPhasedValidation } from "./phased/phased-validation.ts";
import { createRaisePartition } from "./phased/raise-partition.ts";
import { createZpdbValidation } from "./budgets/zpdb-validation.ts";
import { showTotals } from "./totals/show-totals.ts";

export interface FunctionsComposition {
  /** The process's own metrics, with the reconciler's totals. */
  readonly metrics: Pick<Metrics, "render">;
  readonly configuration: WebhookSettings;
  readonly rim: Rim;
  readonly webhooks: readonly Webhook[];
  /** The handlers of all webhooks, by their paths. */
  readonly routes: ReadonlyMap<string, Handler>;
}

/** Throws `BadConfiguration`. `lookup` resolves the names of pods instead of DNS. */
export async function composeFunctions(
  env: Environment,
  machine: Machine,
  lookup?: LookupFunction,
): Promise<FunctionsComposition> {
  const { configuration, log, metrics, connection, cluster, clock, tracer } = await start(env, machine, {
    service: "zonewise-webhooks",
  });
  const { namespace, namespaces, lease } = configuration;
  const { requestTimeoutMs, audience } = configuration.webhooks;
  const keys = {
    timeoutMs: configuration.clientTimeoutMs,
    observer: metrics.observer,
    onDate: clock.follow,
    tracer,
    now: clock.now,
  };
  const authenticate = audience === undefined ? undefined : createTokenCheck(connection, { audience, ...keys });
  const tasks = createBackgroundTasks();
  const podHttp = createPodHttp({
    timeoutMs: configuration.podTimeoutMs,
    clock,
    observer: metrics.podObserver,
    // Each request limits itself to 32 (§4.8): silent pods of one group must not delay calls to another group's.
    atOnce: Number.POSITIVE_INFINITY,
    ...(lookup && { lookup }),
    open: machine.open,
  });
  const tools = { cluster, clock };
  const record = configuration.useZoneTracker
    ? recordInTracker(tools, configuration.zoneTracker)
    : recordInAnnotation(tools, configuration.zoneTracker);
  const identity = `${configuration.identity ?? "zonewise"}_${randomUUID()}`;
  const budgets = composeBudgets({ cluster, clock, log, identity });
  const readBody = createBodyReader();
  const rim = { clock, log, metrics: metrics.webhooks, tracer, requestTimeoutMs, authenticate, tasks, readBody };
  const webhooks = [
    createNoDownscale(tools),
    createPrepareDownscale({
      ...tools,
      podHttp,
      tasks,
      clusterDomain: configuration.clusterDomain,
      record,
      reserver: budgets.reserver,
      emitEvents: budgets.emitEvents,
    }),
    createPodEviction({ reserver: budgets.reserver, metrics: metrics.budgets }),
    createPodDeletion({ ...budgets, metrics: metrics.budgets }),
    createZpdbValidation(),
    createPhasedDefaults(),
    createPhasedValidation(tools),
    createRaisePartition(),
  ];
  return {
    configuration: configuration.webhooks,
    metrics: showTotals({
      ...tools,
      log,
      metrics,
      namespaces: namespaces === "*" ? [""] : namespaces,
      reconciler: { namespace, name: lease.name },
      identity,
    }),
    rim,
    webhooks,
    routes: routeWebhooks(webhooks, rim),
  };
}
