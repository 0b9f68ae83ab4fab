/** What the API server of KUBECONFIG uses of its machine for work that a bench makes it do. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readText } from "../../infra/http.ts";
import { loadConnection } from "../../infra/kubernetes/connection.ts";
import { openExchange } from "../../infra/kubernetes/transport.ts";
import { readCpuMs, readResidentMb } from "./peak.ts";

export interface ApiServer {
  /** Resolves with the result of the work, and the milliseconds of CPU for it, less what is used without it. */
  readonly measure: <T>(work: () => Promise<T>) => Promise<{ readonly result: T; readonly serverMs: number }>;
  /** The resident set in MB; NaN if the process is not on this machine. */
  readonly residentMb: () => number;
  readonly close: () => void;
}

const IDLE_MS = 3000;
const CALL_MS = 60_000;

/**
 * Reads /proc of the process in `kube-apiserver.pid` beside the kubeconfig, as test/plane writes it; without one, the
 * server's own metric, whose reading costs some milliseconds and whose steps are of 10.
 */
export async function watchApiServer(kubeconfig: string): Promise<ApiServer> {
  const pid = pidBeside(kubeconfig);
  const connection = await loadConnection({ kubeconfig });
  const readMetric = async (): Promise<number> => {
    const signal = AbortSignal.timeout(CALL_MS);
    const wire = { method: "GET", path: "/metrics", accept: "text/plain" } as const;
    const text = await readText(await openExchange(connection, wire, { signal, remainingMs: () => CALL_MS }), signal);
    return Number(/^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1]) * 1000;
  };
  const usedMs = pid === undefined ? readMetric : async () => readCpuMs(pid);
  return {
    async measure(work) {
      const idleFrom = await usedMs();
      await sleep(IDLE_MS);
      const before = await usedMs();
      const startedAt = performance.now();
      const result = await work();
      const tookMs = performance.now() - startedAt;
      const used = (await usedMs()) - before;
      return { result, serverMs: used - ((before - idleFrom) * tookMs) / IDLE_MS };
    },
    residentMb: () => (pid === undefined ? Number.NaN : readResidentMb(pid)),
    close: () => connection.close(),
  };
}

function pidBeside(kubeconfig: string): number | undefined {
  const file = join(dirname(kubeconfig), "kube-apiserver.pid");
  const pid = existsSync(file) ? Number(readFileSync(file, "utf8")) : Number.NaN;
  return existsSync(`/proc/${pid}/schedstat`) ? pid : undefined;
}
