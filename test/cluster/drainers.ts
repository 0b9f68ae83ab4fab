/** The ways in which programs empty a node, besides `kubectl drain`: what they send, and what they make of the answers. */
import { setTimeout as sleep } from "node:timers/promises";
import { evict, type EvictionAnswer } from "./evict.ts";
import type { Stage } from "./stage.ts";

export interface Drainer {
  readonly name: string;
  readonly deleteOptions: (uid: string) => object;
  /** Codes after which it leaves the pod alone; with all others it asks again. */
  readonly done: readonly number[];
  /** Milliseconds until it asks again: less than theirs, as pods come up faster here. */
  readonly retryMs: number;
}

export const DRAINERS: readonly Drainer[] = [
  // https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/core/scaledown/actuation/drain.go: after 10 s, for 2 minutes.
  { name: "cluster-autoscaler", deleteOptions: () => ({ gracePeriodSeconds: 5 }), done: [201, 404], retryMs: 1000 },
  // https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/node/termination/terminator/eviction.go: a queue that backs off.
  { name: "Karpenter", deleteOptions: (uid) => ({ preconditions: { uid } }), done: [201, 404, 409], retryMs: 300 },
];

const PATIENCE_MS = 120_000;

/** Evicts all pods of a zone at once, as they are now. Resolves with every answer once each of these pods is gone; rejects after 2 minutes. */
export async function evictZone(drainer: Drainer, stage: Stage, zone: string): Promise<EvictionAnswer[]> {
  const { timeline } = stage;
  const pods = [...timeline.pods.values()].filter((pod) => pod.zone === zone);
  const answers: EvictionAnswer[] = [];
  const until = performance.now() + PATIENCE_MS;
  const work = pods.map(async ({ pod, uid }) => {
    for (;;) {
      const answer = await evict(stage, pod, { deleteOptions: drainer.deleteOptions(uid) });
      answers.push(answer);
      if (drainer.done.includes(answer.code)) return;
      if (performance.now() > until) throw new Error(`${drainer.name} was never allowed to evict ${pod}: ${answer.message}`);
      await sleep(drainer.retryMs);
    }
  });
  await Promise.all(work);
  const uids = new Set(pods.map(({ uid }) => uid));
  await timeline.until(`the pods of ${zone} are gone`, () => [...timeline.pods.values()].every(({ uid }) => !uids.has(uid)));
  return answers;
}
