/**
 * How programs drain nodes: `kubectl drain`, and the requests of others and their reactions to the responses.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { evictPatiently, type EvictionAnswer } from "../stage/evict.ts";
import { runKubectl } from "../stage/kubectl.ts";
import type { Stage } from "../stage/stage.ts";

interface Drainer {
  readonly name: string;
  readonly deleteOptions: (uid: string) => object;
  /** Response codes after which it stops; it retries after all others. */
  readonly finalCodes: readonly number[];
  /** Milliseconds until the next attempt: fewer than in reality, as pods start faster here. */
  readonly retryMs: number;
}

export const DRAINERS: readonly Drainer[] = [
  // https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/core/scaledown/actuation/drain.go:
  // after 10 s, for 2 minutes.
  {
    name: "cluster-autoscaler",
    deleteOptions: () => ({ gracePeriodSeconds: 5 }),
    finalCodes: [201, 404],
    retryMs: 1000,
  },
  // https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/node/termination/terminator/eviction.go:
  // a queue that backs off.
  {
    name: "Karpenter",
    deleteOptions: (uid) => ({ preconditions: { uid } }),
    finalCodes: [201, 404, 409],
    retryMs: 300,
  },
];

const TIMEOUT_MS = 300_000;

/**
 * `kubectl drain` of the group's pods on a node; retries, as an operator does, if the webhook is unreachable
 * for a moment. Resolves with all output; rejects after the tenth failure.
 */
export async function drain(node: string, group: string): Promise<string> {
  let text = "";
  for (let tries = 1; tries <= 10; tries++) {
    const result = await runKubectl(["drain", node, `--pod-selector=rollout-group=${group}`, "--timeout=150s"]);
    text += result.text;
    if (result.code === 0) return text;
  }
  throw new Error(text);
}

/**
 * Evicts all current pods of a zone at once. Resolves with all responses once these pods are gone; rejects
 * after 5 minutes.
 */
export async function evictZone(
  drainer: Drainer,
  stage: Pick<Stage, "call" | "namespace" | "timeline">,
  zone: string,
): Promise<EvictionAnswer[]> {
  const { timeline } = stage;
  const pods = [...timeline.pods.values()].filter((pod) => pod.zone === zone);
  const answers: EvictionAnswer[] = [];
  const deadline = performance.now() + TIMEOUT_MS;
  const evictions = pods.map(async ({ pod, uid }) => {
    for (;;) {
      const answer = await evictPatiently(stage, pod, { deleteOptions: drainer.deleteOptions(uid) });
      answers.push(answer);
      if (drainer.finalCodes.includes(answer.code)) return;
      if (performance.now() > deadline)
        throw new Error(`${drainer.name} was not allowed to evict ${pod}: ${answer.message}`);
      await sleep(drainer.retryMs);
    }
  });
  await Promise.all(evictions);
  const uids = new Set(pods.map(({ uid }) => uid));
  await timeline.until(`the pods of ${zone} are gone`, () =>
    [...timeline.pods.values()].every(({ uid }) => !uids.has(uid)),
  );
  return answers;
}
