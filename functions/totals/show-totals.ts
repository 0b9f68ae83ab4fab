/**
 * Shows the reconciler's totals in the functions' `/metrics`, read from RolloutGroups and from the reconciler's Lease.
 *
 * All replicas would show the same numbers, and a sum over them would count each as often as there are replicas. So one of them shows them: the holder
 * of a Lease that is taken and renewed by scrapes. A scrape after 5 s or more reads again.
 */
import type { Clock } from "../../infra/clock.ts";
import { absent, hasCode } from "../../infra/errors.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { changeLease, getLease, holdBy, isHeldByOther, type LeaseRef, writeLease } from "../../infra/kubernetes/lease-object.ts";
import { rolloutGroups } from "../../infra/kubernetes/resources.ts";
import type { Log } from "../../infra/log.ts";
import { MOST_GROUPS, type Metrics } from "../../infra/metrics/metrics.ts";
import { parseTotals, TOTALS } from "../../infra/metrics/totals.ts";
import { type GroupRecord, sampleGroups } from "./group-samples.ts";

export interface TotalsOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "show" | "render" | "contentType">;
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  /** The reconciler's Lease. */
  readonly reconciler: LeaseRef;
  /** Of this process. */
  readonly identity: string;
}

/** Milliseconds: of what was read, how old it may be; of the Lease, three scrapes or more; of all calls of a scrape. */
const FRESH_MS = 5000;
const TURN_MS = 90_000;
const READ_MS = 5000;
/** Milliseconds that a scrape waits for the totals. */
const PATIENCE_MS = 1000;

/** Metrics that read the totals before each scrape. Without them, the process's own are shown. */
export function showTotals(options: TotalsOptions): Pick<Metrics, "render" | "contentType"> {
  const { clock, log, metrics } = options;
  let readAt = -Infinity;
  let reading: Promise<void> | undefined;
  let logged = "";

  async function read(): Promise<void> {
    try {
      const isShown = await takeTurn(options);
      metrics.show(isShown ? await gather(options) : new Map());
    } catch (error) {
      metrics.show(new Map());
      const code = hasCode(error, "NotFound", "Forbidden") ? error.code : "other";
      if (code !== logged) log.info("the reconciler's totals are not in the metrics", { error });
      logged = code;
    }
  }

  return {
    contentType: metrics.contentType,
    async render() {
      if (!reading && clock.monotonic() - readAt >= FRESH_MS) {
        readAt = clock.monotonic();
        reading = read().finally(() => (reading = undefined));
      }
      // A slow API server must not hide the process's own series: the totals are shown with a later scrape.
      const ended = new AbortController();
      await Promise.race([reading, clock.sleep(PATIENCE_MS, ended.signal)]).finally(() => ended.abort());
      return await metrics.render();
    },
  };
}

/** True if this process is to show the totals. */
async function takeTurn({ cluster, clock, reconciler, identity }: TotalsOptions): Promise<boolean> {
  const ref = { namespace: reconciler.namespace, name: `${reconciler.name}-metrics` };
  const call = { deadlineMs: READ_MS };
  const found = await getLease(cluster, ref, call);
  if (found && isHeldByOther(found, identity, clock.now())) return false;
  const spec = holdBy(identity, TURN_MS, clock.now());
  try {
    await writeLease(cluster, changeLease(ref, found, { annotations: {}, spec }), call);
    return true;
  } catch (error) {
    // Another replica was faster.
    if (hasCode(error, "Conflict")) return false;
    throw error;
  }
}

async function gather({ cluster, namespaces, reconciler }: TotalsOptions) {
  const call = { deadlineMs: READ_MS };
  const lease = await getLease(cluster, reconciler, call);
  const groups: GroupRecord[] = [];
  for (const scope of namespaces) groups.push(...(await listGroups(cluster, scope)));
  return sampleGroups(groups, parseTotals(lease?.metadata?.annotations?.[TOTALS]), MOST_GROUPS);
}

/** None if the cluster knows no RolloutGroup. */
async function listGroups(cluster: Cluster, scope: string): Promise<GroupRecord[]> {
  const groups: GroupRecord[] = [];
  const read = async (): Promise<void> => {
    for await (const { items } of cluster.list(rolloutGroups, scope === "" ? {} : { namespace: scope }, { deadlineMs: READ_MS }))
      for (const { metadata, status } of items) if (status) groups.push({ namespace: metadata.namespace ?? "", status });
  };
  await read().catch(absent);
  return groups;
}
