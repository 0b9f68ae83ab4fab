/** Pending downscales that the reconciler concludes. */
import type { TestContext } from "node:test";
import { systemClock } from "../../../../infra/clock.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import type { PodHttp } from "../../../../infra/pod-http.ts";
import type { PendingDownscales } from "../../../../reconciler/downscale/pending.ts";
import type { Draft } from "../../../../reconciler/report/events.ts";
import { createConcluder } from "../../../../reconciler/downscale/act/conclude-downscales.ts";
import { keepingLog, setStage } from "../../../functions/stage.ts";
import { add } from "../../../builders.ts";

export const LAST = "grafana.com/last-downscale";

export const START = Date.parse("2026-01-01T00:00:00Z");

export const OLD = new Date(START - 130_000).toISOString();

export const LEASE = "zonewise-downscale-x";

export async function set(
  t: TestContext,
  send: PodHttp["send"] = async () => ({ status: 200, body: "secret" }),
  onGet = () => {},
  onReplaced = () => {},
  /** How many times faster timers run than their milliseconds say. */
  haste = 1,
) {
  const stage = await setStage(t);
  const cluster: Cluster = {
    ...stage.cluster,
    get: (...call) => (onGet(), stage.cluster.get(...call)),
    replace: (...call) => stage.cluster.replace(...call).finally(onReplaced),
  };
  const { store } = stage.emulator;
  const notified: string[] = [];
  const events: Draft[] = [];
  const { log, entries } = keepingLog();
  let later = 0;
  const after = (ms: number, run: () => void): (() => void) => {
    const timer = setTimeout(run, ms / haste);
    return () => clearTimeout(timer);
  };
  const clock = { ...systemClock, now: () => START + later, monotonic: () => later, after };
  const podHttp: PodHttp = {
    send: (method, url, request) => {
      notified.push(`${method} ${new URL(url).hostname.split(".")[0]}`);
      return send(method, url, request);
    },
  };
  /** What the last call told. */
  const left = { isPending: false };
  const conclude = createConcluder({ log, podHttp, clusterDomain: "x", zoneTracker: "tracker" });
  return {
    ...stage,
    notified,
    events,
    entries,
    left,
    pass: (ms: number) => void (later += ms),
    /** Concludes once; resolves with the API calls. */
    async conclude(
      namespaces: readonly string[] = ["default"],
      stop = new AbortController().signal,
      isLeftOut: (lease: { readonly namespace: string; readonly name: string }) => boolean = () => false,
    ): Promise<string[]> {
      stage.calls.length = 0;
      const recorder = { emitEvents: (drafts: readonly Draft[]) => void events.push(...drafts) };
      const fence = { write: () => ({}) };
      left.isPending = await conclude({ cluster, clock, fence, stop }, { namespaces, recorder, isLeftOut });
      return [...stage.calls];
    },
    note(pending: PendingDownscales, spec: object = { holderIdentity: "" }, name = LEASE): void {
      add(store, "Lease", name, {
        labels: { "zonewise/downscale": "pending" },
        annotations: { "zonewise/pending-downscales": JSON.stringify(pending) },
        spec,
      });
    },
    leaseMetadata: () => store.get("leases.coordination.k8s.io", "default", LEASE)?.metadata,
    written: () => store.get("statefulsets.apps", "default", "web")?.metadata.annotations?.[LAST],
  };
}

export const LIST = "GET coordination.k8s.io/v1/leases collection 200";

export const FROM_5 = { generation: 1, from: 5, to: 3, prepared: { start: 3, end: 5 }, at: OLD };
