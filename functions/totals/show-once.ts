/**
 * Series that are read from the cluster and shown in `/metrics` by one of several replicas.
 *
 * All replicas would show the same numbers, and a sum over the replicas would count each number several times. So only
 * one replica shows them: the holder of a Lease that scrapes take and renew. A scrape 5 s or more after the last read
 * reads again.
 */
import type { Clock } from "../../infra/clock.ts";
import { hasCode } from "../../infra/errors.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import {
  changeLease,
  getLease,
  holdBy,
  isHeldByOther,
  type LeaseRef,
  writeLease,
} from "../../infra/kubernetes/lease-object.ts";
import type { Log } from "../../infra/log.ts";
import type { Metrics } from "../../infra/metrics/metrics.ts";
import type { Samples } from "../../infra/metrics/registry.ts";

export interface ShownOnce {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "show" | "render">;
  /** Its holder shows the series. */
  readonly lease: LeaseRef;
  /** The name of this process in the Lease. */
  readonly identity: string;
  /** The name of the series, for the log. */
  readonly what: string;
  /** It may `omit` some of the series, and says by which error. */
  readonly gather: (call: Call, omit: (error: unknown) => void) => Promise<Samples>;
}

/**
 * Milliseconds: the age that a reading may have; the duration of the Lease, three scrapes or more; the time for all
 * calls of a scrape.
 */
const FRESH_MS = 5000;
const TURN_MS = 90_000;
const READ_MS = 5000;
/** Milliseconds that a scrape waits for the series. */
const PATIENCE_MS = 1000;

/** Metrics that read the series before each scrape. Without them, the process's own are shown. */
export function showOnce(options: ShownOnce): Pick<Metrics, "render"> {
  const { clock, log, metrics } = options;
  let readAt = -Infinity;
  /** When the turn of this process was confirmed last. */
  let turnAt = -Infinity;
  let reading: Promise<void> | undefined;
  let logged = "";

  /** Once, until the error is another one. */
  function report(text: string, error: unknown): void {
    const code = hasCode(error, "NotFound", "Forbidden") ? error.code : "other";
    if (`${text} ${code}` !== logged) log.info(text, { error });
    logged = `${text} ${code}`;
  }

  async function read(): Promise<void> {
    const call = { deadlineMs: READ_MS };
    const at = clock.monotonic();
    try {
      const isOurs = await takeTurn(options, call);
      if (isOurs) turnAt = at;
      const omit = (error: unknown): void => report(`some of ${options.what} are not in the metrics`, error);
      metrics.show(isOurs ? await options.gather(call, omit) : new Map());
    } catch (error) {
      metrics.show(new Map());
      report(`${options.what} are not in the metrics`, error);
    }
  }

  return {
    async render() {
      if (!reading && clock.monotonic() - readAt >= FRESH_MS) {
        readAt = clock.monotonic();
        reading = read().finally(() => (reading = undefined));
      }
      // A slow API server must not hide the process's own series: the others are shown with a later scrape.
      const ended = new AbortController();
      await Promise.race([reading, clock.sleep(PATIENCE_MS, ended.signal)]).finally(() => ended.abort());
      // Another replica may have taken the turn.
      if (clock.monotonic() - turnAt >= TURN_MS) metrics.show(new Map());
      return await metrics.render();
    },
  };
}

/** True if this process is to show them. */
async function takeTurn({ cluster, clock, lease, identity }: ShownOnce, call: Call): Promise<boolean> {
  const found = await getLease(cluster, lease, call);
  if (found && isHeldByOther(found, identity, clock.now())) return false;
  const spec = holdBy(identity, TURN_MS, clock.now());
  try {
    await writeLease(cluster, changeLease(lease, found, { annotations: {}, spec }), call);
    return true;
  } catch (error) {
    // Another replica was faster.
    if (hasCode(error, "Conflict")) return false;
    throw error;
  }
}
