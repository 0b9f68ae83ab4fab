/** Runs the reconciler as the CronJob does, over HTTPS, one run after the other. */
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { type LazyFields, type Log, type LogFields, readFields } from "../../infra/log.ts";
import { compose } from "../../reconciler/run/compose.ts";
import { run } from "../../reconciler/run/run.ts";

export interface DemoReconciler {
  /** The reconciler's connection. */
  readonly cluster: Cluster;
  /** One run: until its time budget is spent, or `stop` fires, and the Lease is released; never rejects. */
  readonly runOnce: (stop: AbortSignal) => Promise<void>;
  /** One run after the other, until `stop` fires. */
  readonly runUntil: (stop: AbortSignal) => Promise<void>;
}

type Level = keyof Log;
const PAUSE_MS = 1000;

interface DemoReconcilerOptions {
  /** The path of a kubeconfig file. */
  readonly kubeconfig: string;
  /** Where the Lease is; the reconciler serves all namespaces. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly onLog: (level: Level, message: string, fields: LogFields) => void;
  /** More variables. */
  readonly env?: Readonly<Record<string, string>>;
}

export async function composeReconciler({
  kubeconfig,
  namespace,
  clock,
  onLog,
  env,
}: DemoReconcilerOptions): Promise<DemoReconciler> {
  const { run: input } = await compose(
    { KUBECONFIG: kubeconfig, KUBERNETES_NAMESPACE: namespace, NAMESPACES: "*", ...env },
    clock,
  );
  const logAt =
    (level: Level) =>
    (message: string, fields?: LazyFields): void =>
      onLog(level, message, readFields(fields));
  const log: Log = { debug: logAt("debug"), info: logAt("info"), warn: logAt("warn"), error: logAt("error") };
  const runOnce = async (stop: AbortSignal): Promise<void> => void (await run({ ...input, log, stop }));
  return {
    cluster: input.cluster,
    runOnce,
    async runUntil(stop) {
      while (!stop.aborted) {
        await runOnce(stop);
        // A run ends when its time budget is spent; then the CronJob starts the next.
        await clock.sleep(PAUSE_MS, stop);
      }
    },
  };
}
