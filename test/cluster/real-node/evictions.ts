/** A loop of real evictions of a group's pods, by several clients. */
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { evict, type EvictionAnswer } from "../stage/evict.ts";
import { createRandom } from "../stage/random.ts";
import type { Stage } from "../stage/stage.ts";

interface Evictions {
  /** Evictions that got neither a verdict nor a word on the pod's state. */
  readonly lost: readonly EvictionAnswer[];
  readonly describe: () => string;
  /** Resolves once the last answer is there. */
  readonly stop: () => Promise<void>;
}

type Place = Pick<Stage, "call" | "namespace" | "timeline">;

const CLIENTS = 4;
const PAUSE_MS = 20;
/** Evicted, gone already, replaced meanwhile, not now. */
const ANSWERS = new Set([201, 404, 409, 429]);

/** The webhook answers 400 if the pod is gone when it looks. */
const isLost = ({ code, message }: EvictionAnswer): boolean =>
  !ANSWERS.has(code) && !/denied the request: pods \\"\S+ not found/.test(message);

/** Evicts random pods of the group, in any state, until it is stopped, or the test ends, also if it fails. */
export function startEvictions(t: TestContext, place: Place, group: string): Evictions {
  const codes = new Map<number, number>();
  const lost: EvictionAnswer[] = [];
  const ended = new AbortController();
  const clients = Array.from({ length: CLIENTS }, async (_, i) => {
    const random = createRandom(`client-${i}`);
    while (!ended.signal.aborted) {
      const pod = random.pick(podsOf(place, group));
      if (pod !== undefined) {
        const answer = await evict(place, pod);
        codes.set(answer.code, (codes.get(answer.code) ?? 0) + 1);
        if (isLost(answer)) lost.push(answer);
      }
      await sleep(PAUSE_MS);
    }
  });
  const stop = async (): Promise<void> => {
    ended.abort();
    await Promise.all(clients);
  };
  t.after(stop);
  return {
    lost,
    stop,
    describe() {
      const sent = [...codes.values()].reduce((sum, count) => sum + count, 0);
      return `${sent} evictions, ${lost.length} lost (${[...codes].map(([code, count]) => `${code}: ${count}`).join(", ")})`;
    },
  };
}

/** Resolves once `count` dry runs of evictions in a row had a verdict; rejects after 5 minutes with the last error. */
export async function untilAnswered(place: Place, group: string, count = 20): Promise<void> {
  const deadline = performance.now() + 300_000;
  for (let inARow = 0; inARow < count;) {
    const [pod = ""] = podsOf(place, group);
    const answer = await evict(place, pod, { query: "?dryRun=All" });
    const isAnswered = answer.code === 201 || answer.code === 429;
    inARow = isAnswered ? inARow + 1 : 0;
    if (performance.now() > deadline) throw new Error(`evictions are still not answered: ${answer.message}`);
    if (!isAnswered) await sleep(200);
  }
}

const podsOf = ({ timeline }: Place, group: string): string[] =>
  [...timeline.pods.values()].flatMap((pod) => (pod.group === group ? [pod.pod] : []));
