/** Keeps the history of the drill's pods: every change, in the API server's order. */
import { hasCode } from "../../infra/errors.ts";
import { pods } from "../../infra/kubernetes/resources.ts";
import type { Drill } from "./evict.ts";
import { type PodFact, readFact } from "./history.ts";
import { LABEL } from "./plan.ts";

/** Milliseconds between attempts while the API server does not answer. */
const AGAIN_MS = 1000;

/**
 * Resolves once the signal fires; never rejects. A watch that ends is resumed from its last version if possible. If it
 * has failed, and has received nothing since, the history ends with a gap.
 */
export async function followPods(drill: Drill): Promise<void> {
  const { cluster, clock, history, run, signal } = drill;
  const query = { namespace: run.namespace, labelSelector: `${LABEL}=${run.name}` };
  let version: string | undefined;
  let isFirst = true;
  let isBlind = false;
  while (!signal.aborted) {
    try {
      version ??= await list();
      await cluster.watch(
        pods,
        { ...query, resourceVersion: version },
        {
          onHint: ({ resourceVersion }) => {
            version = resourceVersion;
            isBlind = false;
          },
          onObject: (type, object) => history.add({ what: "pod", pod: readFact(object, type === "DELETED") }),
          signal,
        },
      );
    } catch (error) {
      isBlind ||= !signal.aborted;
      if (hasCode(error, "Expired")) version = undefined;
      await clock.sleep(AGAIN_MS, signal);
    }
  }
  if (isBlind) history.add({ what: "pods", pods: [...history.pods.values()], gap: true });

  async function list(): Promise<string> {
    let newest = "";
    const all: PodFact[] = [];
    for await (const { items, resourceVersion } of cluster.list(pods, query)) {
      newest = resourceVersion;
      all.push(...items.map((pod) => readFact(pod)));
    }
    history.add({ what: "pods", pods: all, gap: !isFirst });
    isFirst = false;
    isBlind = false;
    return newest;
  }
}
