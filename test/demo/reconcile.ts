/** The reconciler as the CronJob runs it, over HTTPS, run after run. */
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import type { Log, LogFields } from "../../infra/log.ts";
import { compose } from "../../reconciler/compose.ts";
import { run } from "../../reconciler/run.ts";

export interface Reconciling {
  /** The port that the reconciler works through. */
  readonly cluster: Cluster;
  /** Runs until `stop` fires and the Lease is released; never rejects. */
  readonly runUntil: (stop: AbortSignal) => Promise<void>;
}

type Level = keyof Log;
const PAUSE_MS = 1000;

/** The reconciler of all namespaces of the cluster in `kubeconfig`, with its Lease in `namespace`. */
export async function composeReconciler(
  kubeconfig: string,
  namespace: string,
  clock: Clock,
  onLog: (level: Level, message: string, fields: LogFields) => void,
): Promise<Reconciling> {
  const { run: input } = await compose({ KUBECONFIG: kubeconfig, KUBERNETES_NAMESPACE: namespace, NAMESPACES: "*" }, clock);
  const entry =
    (level: Level) =>
    (message: string, fields: LogFields = {}): void =>
      onLog(level, message, fields);
  const log: Log = { debug: entry("debug"), info: entry("info"), warn: entry("warn"), error: entry("error") };
  return {
    cluster: input.cluster,
    async runUntil(stop) {
      while (!stop.aborted) {
        await run({ ...input, log, stop });
        // A run ends when its time budget is spent; the CronJob would start the next.
        await clock.sleep(PAUSE_MS, stop);
      }
    },
  };
}
