/** Opens the cluster that the flags and the kubeconfig name. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { firstOfSignals, type Clock } from "../infra/clock.ts";
import { parseGoDuration } from "../infra/duration.ts";
import { connectCluster } from "../infra/kubernetes/connect-cluster.ts";
import { type ConnectionSource, loadConnection } from "../infra/kubernetes/connection.ts";
import type { Machine as Host } from "../infra/machine.ts";
import { createServerClock } from "../infra/server-clock.ts";
import { usageError } from "./exit.ts";
import { createSettings } from "./gather/settings.ts";
import type { Session } from "./session.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The flags of every command, as parsed. */
interface ConnectionFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly as?: string;
  readonly asGroup?: readonly string[];
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
  readonly requestTimeout?: string;
}

interface Opened extends Pick<Session, "cluster" | "clock" | "namespace" | "settings"> {
  /** Ends the calls that are still under way, and the connections. */
  readonly close: () => void;
}

export interface CliMachine extends Pick<Host, "connect"> {
  readonly env: Environment;
  readonly clock: Clock;
  /** Cancels calls. */
  readonly signal: AbortSignal;
}

const TIMEOUT = "10s";

/** Throws `BadConfiguration`, or a `CliError`. Sends no request to the cluster yet. */
export async function openCluster(
  flags: ConnectionFlags,
  { env, clock: machine, signal: stop, connect = loadConnection }: CliMachine,
): Promise<Opened> {
  const timeoutMs = parseGoDuration(flags.requestTimeout ?? TIMEOUT);
  if (timeoutMs === undefined || timeoutMs <= 0)
    throw usageError(`invalid --request-timeout "${flags.requestTimeout}": use e.g. 30s`);
  if (flags.asGroup && flags.as === undefined) throw usageError("--as-group needs --as");
  const connection = await connect(sourceOf(flags, env));
  const clock = createServerClock(machine);
  const closed = new AbortController();
  const signal = firstOfSignals(stop, closed.signal);
  const cluster = connectCluster(connection, { timeoutMs, onDate: clock.follow, signal });
  // An empty name counts as not given, as with kubectl: -n "$NAMESPACE" without the variable must not mean all.
  const namespace = flags.allNamespaces ? "" : flags.namespace || connection.namespace || "default";
  const close = (): void => {
    closed.abort();
    connection.close();
  };
  const settings = createSettings({ cluster });
  return { close, cluster, clock, namespace, settings };
}

function sourceOf(
  { kubeconfig, context, as: user, asGroup: groups = [] }: ConnectionFlags,
  env: Environment,
): ConnectionSource {
  const own = join(env["HOME"] ?? "/", ".kube/config");
  const file = kubeconfig ?? (env["KUBECONFIG"] || (existsSync(own) ? own : undefined));
  return { kubeconfig: file, context, ...(user !== undefined && { impersonate: { user, groups } }) };
}
