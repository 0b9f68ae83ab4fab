/**
 * A group of two zones whose downscales are requested through processes that may die at any of their calls, and a
 * reconciler that concludes them.
 */
import type { TestContext } from "node:test";
import type { AdmissionRequest, Answer, Webhook } from "../../functions/http/webhook.ts";
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import type { PodHttp } from "../../infra/pod-http.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { createConcluder } from "../../reconciler/downscale/act/conclude-downscales.ts";
import { A, B, inAnnotation, MIN_TIME, type RecordOf, settle as settleTimes, TRACKER } from "./prepare-stage.ts";
import {
  callWebhook,
  createZone,
  keepingLog,
  playPods,
  scaleReviewOf,
  setStage,
  type Stage,
  startPrepareDownscale,
} from "./stage.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

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

export interface Scene extends Stage {
  readonly seen: string[];
  readonly zones: readonly [StatefulSet, StatefulSet];
  readonly clock: Clock;
  /** Advances the clock, which stands still otherwise, by milliseconds. */
  pass(ms: number): void;
  /** Calls a webhook by this clock. */
  call(webhook: Webhook, request: AdmissionRequest): Promise<Answer>;
  /** The webhook of a process that dies at this call. */
  process(diesAt?: number): { readonly webhook: Webhook; readonly made: () => number };
  /** One conclusion by a reconciler that dies at this call; resolves with its calls. */
  conclude(diesAt?: number): Promise<number>;
}

export async function set(
  t: TestContext,
  script?: Parameters<typeof playPods>[1],
  recordOf: RecordOf = inAnnotation,
): Promise<Scene> {
  const stage = await setStage(t);
  settleTimes(stage, recordOf);
  const { podHttp, seen } = await playPods(t, script);
  let later = 0;
  // The pause after a lost race is over at once; the wait for a deadline never ends.
  const sleep = (ms: number): Promise<void> => (ms < 1000 ? Promise.resolve() : new Promise(() => {}));
  const clock: Clock = { now: () => START + later, monotonic: () => later, sleep };
  const labels = { [MIN_TIME]: "12h" };
  return {
    ...stage,
    seen,
    clock,
    zones: [createZone(stage, A, { labels }), createZone(stage, B, { labels })],
    pass: (ms) => void (later += ms),
    call: (webhook, request) => callWebhook(webhook, request, { clock }),
    process(diesAt = Infinity) {
      const life = live(stage.cluster, podHttp, diesAt);
      const { made, ...tools } = life;
      return {
        webhook: startPrepareDownscale({ ...tools, clock, record: recordOf({ cluster: life.cluster, clock }) }),
        made,
      };
    },
    async conclude(diesAt = Infinity) {
      const life = live(stage.cluster, podHttp, diesAt);
      const conclude = createConcluder({
        ...life,
        log: keepingLog().log,
        clusterDomain: "x",
        zoneTracker: TRACKER,
      });
      await conclude(
        { cluster: life.cluster, clock, fence: { write: () => ({}) }, stop: new AbortController().signal },
        { namespaces: ["default"], recorder: { emitEvents: () => {} } },
      );
      return life.made();
    },
  };
}

/** Stores the admitted downscale, like the API server. */
export function store({ emulator }: Scene, name: string, replicas: number): void {
  const now = emulator.store.get("statefulsets.apps", "default", name) as unknown as StatefulSet;
  emulator.store.update("statefulsets.apps", { ...now, spec: { ...now.spec, replicas } } as never);
}

/** Requests the downscale of A through its scale in a process that dies at this call; true if it was admitted. */
export async function shrink(
  scene: Scene,
  diesAt: number,
  uid = "first",
): Promise<{ isAdmitted: boolean; made: number }> {
  const { webhook, made } = scene.process(diesAt);
  const answer = await scene.call(webhook, scaleReviewOf(scene.zones[0], 1, { uid })).catch(() => undefined);
  return { isAdmitted: answer?.allowed === true, made: made() };
}
