/**
 * The common start of all processes with a Cluster: configuration -> log -> metrics -> tracer -> connection -> cluster.
 */
import type { Cluster } from "./kubernetes/cluster.ts";
import { connectCluster } from "./kubernetes/connect-cluster.ts";
import { type Configuration, type ConfigurationOptions, type Environment, readConfiguration } from "./config/config.ts";
import { type Connection, loadConnection } from "./kubernetes/connection.ts";
import { type Log, createLog, stdout } from "./log.ts";
import type { Machine } from "./machine.ts";
import { type Metrics, createMetrics } from "./metrics/metrics.ts";
import { type ServerClock, createServerClock } from "./server-clock.ts";
import { loadTracer } from "./tracing/load-tracer.ts";
import type { Tracer } from "./tracing/tracer.ts";

export interface Runtime {
  readonly configuration: Configuration;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly connection: Connection;
  /** Its calls are counted by the metrics. */
  readonly cluster: Cluster;
  /** The API server's clock, for everything but the log. */
  readonly clock: ServerClock;
  readonly tracer: Tracer;
}

interface StartOptions extends ConfigurationOptions {
  /** The name of the process in traces. */
  readonly service: string;
}

/** Throws `BadConfiguration`. */
export async function start(
  env: Environment,
  machine: Machine,
  { service, ...options }: StartOptions,
): Promise<Runtime> {
  const configuration = readConfiguration(env, options);
  const { connect = loadConnection, write = stdout.write } = machine;
  const log = createLog({ ...configuration.log, write, now: () => new Date(machine.now()) });
  const metrics = createMetrics();
  const tracer = machine.tracer ?? (await loadTracer(env, service, log));
  const connection = await connect(configuration.connection);
  const { clientTimeoutMs: timeoutMs, rate } = configuration;
  const clock = createServerClock(machine);
  const cluster = connectCluster(connection, {
    timeoutMs,
    rate,
    observer: metrics.observer,
    onDate: clock.follow,
    clock: machine,
    tracer,
  });
  return { configuration, log, metrics, connection, cluster, clock, tracer };
}
