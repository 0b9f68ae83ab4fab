/**
 * A group of two zones whose downscales are requested through processes that may die at any of their calls, and a
 * reconciler that concludes them.
 */
import { recordInAnnotation, recordInTracker } from "../../functions/downscale/downscale-record.ts";
import type { AdmissionRequest, Answer, Webhook } from "../../functions/http/webhook.ts";
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import type { PodHttp } from "../../infra/pod-http.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { createConcluder } from "../../reconciler/downscale/act/conclude-downscales.ts";
import { nameLease, pendingOf } from "../../reconciler/downscale/act/downscale-lease.ts";
import type { PendingDownscales } from "../../reconciler/downscale/pending.ts";
import { factsOf, judged, LAST } from "../reconciler/downscale/scene.ts";
import { keepObjects, type Kept } from "../reconciler/kept-objects.ts";
import { callWebhook, keepingLog, reviewOf, scaleReviewOf, startPrepareDownscale } from "./stage.ts";

export const A = "ingester-zone-a";
const START = Date.parse("2026-01-01T00:00:00Z");
const TRACKER = "tracker";

/** Whether times are recorded in the zone tracker. */
export const MODES = [
  ["annotation mode", false],
  ["tracker mode", true],
] as const;

class Killed extends Error {}

/** A process that dies before its call of this number takes effect or, at a half, before its answer. */
function live(cluster: Cluster, podHttp: PodHttp, diesAt: number) {
  let made = 0;
  const call = async <T>(effect: () => Promise<T>): Promise<T> => {
    const number = made++;
    if (number >= diesAt) throw new Killed();
    const result = await effect();
    if (number + 0.5 >= diesAt) throw new Killed();
    return result;
  };
  async function* pages<T>(given: AsyncGenerator<T>): AsyncGenerator<T> {
    const all: T[] = [];
    await call(async () => {
      for await (const page of given) all.push(page);
    });
    yield* all;
  }
  const mortal: Cluster = {
    ...cluster,
    list: (...args) => pages(cluster.list(...args)),
    get: (...args) => call(() => cluster.get(...args)),
    create: (...args) => call(() => cluster.create(...args)),
    replace: (...args) => call(() => cluster.replace(...args)),
    patch: (...args) => call(() => cluster.patch(...args)),
  };
  return {
    cluster: mortal,
    podHttp: { send: (...args) => call(() => podHttp.send(...args)) } satisfies PodHttp,
    made: () => made,
  };
}

export type Scene = ReturnType<typeof set>;

export function set({ isTracked = false, script = (_method: string, _pod: string): number => 200 } = {}) {
  const zone = judged({ labels: { "grafana.com/min-time-between-zones-downscale": "12h" } });
  const { statefulSets, pods } = factsOf([zone, zone]);
  const trackerOf = (data: object): Kept => ({ metadata: { name: TRACKER, resourceVersion: "1" }, data }) as Kept;
  const configmaps = isTracked ? [trackerOf({})] : [];
  const kept = keepObjects({ statefulsets: statefulSets, pods, configmaps });
  const seen: string[] = [];
  const podHttp: PodHttp = {
    async send(method, url) {
      const [pod = ""] = new URL(url).hostname.split(".");
      seen.push(`${method} ${pod}`);
      return { status: script(method, pod), body: "" };
    },
  };
  let later = 0;
  // The pause after a lost race is over at once; the wait for a deadline never ends.
  const sleep = (ms: number): Promise<void> => (ms < 1000 ? Promise.resolve() : new Promise(() => {}));
  const clock: Clock = { now: () => START + later, monotonic: () => later, sleep };
  const current = (name: string): StatefulSet => kept.get("statefulsets", name) as StatefulSet;
  /** The webhook of a process that dies at this call. */
  const process = (diesAt = Infinity): { readonly webhook: Webhook; readonly made: () => number } => {
    const { made, ...tools } = live(kept.cluster, podHttp, diesAt);
    const record = (isTracked ? recordInTracker : recordInAnnotation)({ cluster: tools.cluster, clock }, TRACKER);
    return { webhook: startPrepareDownscale({ ...tools, clock, record }), made };
  };
  const call = (webhook: Webhook, request: AdmissionRequest): Promise<Answer> =>
    callWebhook(webhook, request, { clock });
  const asked = { namespace: "test" };
  return {
    seen,
    clock,
    /** Advances the clock, which stands still otherwise, by milliseconds. */
    pass: (ms: number): void => void (later += ms),
    /** Asks for the downscale of zone B to so many replicas. */
    shrinkB: async (to = 1, uid = "other") =>
      await call(process().webhook, reviewOf(current("ingester-zone-b"), to, { ...asked, uid })),
    /** Asks for a downscale of A, as it is, in a process that lives. */
    shrinkA: async (to: number, uid: string, review = scaleReviewOf) =>
      await call(process().webhook, review(current(A), to, { ...asked, uid })),
    /** Asks for the downscale of A through its scale in a process that dies at this call. */
    async shrink(diesAt = Infinity, uid = "first"): Promise<{ isAdmitted: boolean; made: number }> {
      const { webhook, made } = process(diesAt);
      const answer = await call(webhook, scaleReviewOf(current(A), 1, { ...asked, uid })).catch(() => undefined);
      return { isAdmitted: answer?.allowed === true, made: made() };
    },
    /** One conclusion by a reconciler that dies at this call; resolves with its calls. */
    async conclude(diesAt = Infinity): Promise<number> {
      const life = live(kept.cluster, podHttp, diesAt);
      const conclude = createConcluder({ ...life, log: keepingLog().log, clusterDomain: "x", zoneTracker: TRACKER });
      await conclude(
        { cluster: life.cluster, clock, fence: { write: () => ({}) }, stop: new AbortController().signal },
        { namespaces: ["test"], recorder: { emitEvents: () => {} } },
      );
      return life.made();
    },
    /** Stores a size of A, like the API server. */
    store(replicas: number): void {
      const { metadata, spec, ...set } = current(A);
      const generation = (metadata?.generation ?? 0) + 1;
      const changed = { ...set, metadata: { ...metadata, generation }, spec: { ...spec, replicas } };
      kept.change({ statefulsets: [changed, current("ingester-zone-b")] });
    },
    /** Pods that were prepared and whose preparation was not cancelled. */
    prepared(): string[] {
      const left = new Set<string>();
      for (const [method, pod = ""] of seen.map((one) => one.split(" "))) {
        if (method === "POST") left.add(pod);
        else left.delete(pod);
      }
      return [...left].toSorted();
    },
    pending: (): PendingDownscales => pendingOf(kept.get("leases", nameLease("ingester", A))),
    /** The `last-downscale` of A. */
    written: (): string | undefined => current(A).metadata?.annotations?.[LAST],
    track: (data: object): void => kept.change({ configmaps: [trackerOf(data)] }),
    tracked: (): Record<string, string> =>
      (kept.get("configmaps", TRACKER) as { readonly data?: Record<string, string> } | undefined)?.data ?? {},
  };
}
