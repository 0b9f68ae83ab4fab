/**
 * Finds out whether a webhook guards the pods of a namespace: by the registered webhooks, and by a dry-run eviction
 * that calls them.
 */
import { namespaces } from "../../infra/kubernetes/resources.ts";
import { once } from "../../infra/once.ts";
import { readDeletionGuards } from "../../reconciler/budget/act/read-deletion-guard.ts";
import { readHooks } from "../../reconciler/budget/act/read-guard.ts";
import type { BudgetPod } from "../../reconciler/budget/budget-pod.ts";
import { askWebhook } from "../../reconciler/budget/act/probe.ts";
import { type DeletionGuard, judgeDeletionGuard } from "../../reconciler/budget/deletion-guard.ts";
import { judgeGuard, type Guard } from "../../reconciler/budget/guard.ts";
import { judgeDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import type { World } from "../../reconciler/plan/world.ts";
import { explainError } from "../decide/explain-error.ts";
import type { Session } from "../session.ts";

/** Milliseconds: until then, the port repeats calls that are answered with Retry-After. */
const PROBE_MS = 5000;

interface SeenGuard extends Guard {
  /** The reason why no dry-run eviction was tried; absent if one was. */
  readonly notTried?: string;
}

/** Undefined for a pod that no budget selects, unless its eviction is refused all the same. */
export async function gatherGuard(
  guards: ReturnType<typeof createGuards>,
  pod: BudgetPod,
  world: World,
): Promise<SeenGuard | undefined> {
  const guard = await guards(pod);
  const isSelected = judgeDisruption(world, pod).verdict.reason !== "PodNotInScope";
  return isSelected || isRefusing(guard) ? guard : undefined;
}

/** The webhook cannot be called, and fails closed: every eviction in the namespace is refused, with a budget or without. */
export const isRefusing = ({ state }: Guard): boolean => state === "down";

/** Reads the registered webhooks once, and tries once for each namespace. Never rejects. */
export function createGuards(session: Session): (pod: Pick<BudgetPod, "namespace">) => Promise<SeenGuard> {
  const read = once(async (_all: "all") => await readHooks({ cluster: session.cluster }));
  return once(
    async (pod) => {
      const [reading, { labels, labelsKnown }, probe] = await Promise.all([
        read("all"),
        readLabels(session, pod.namespace),
        read("all").then(({ hooks = [] }) => {
          const source = { cluster: session.cluster, call: { deadlineMs: PROBE_MS } };
          return askWebhook(source, pod.namespace, { hooks, describe: (one) => explainError(one).message });
        }),
      ]);
      const guard = judgeGuard({ ...reading, namespace: pod.namespace, labels, labelsKnown, probe });
      return probe.result === "notTried" ? { ...guard, notTried: probe.why } : guard;
    },
    ({ namespace }) => namespace,
  );
}

/** The guard of deletions of pods with these labels in a namespace; reads once. Never rejects. */
export function createDeletionGuards(
  session: Session,
): (namespace: string, podLabels: Readonly<Record<string, string>>) => Promise<DeletionGuard> {
  const read = once(async (_all: "all") => await readDeletionGuards({ cluster: session.cluster }));
  const labelsOf = once(async (namespace: string) => await readLabels(session, namespace));
  return async (namespace, podLabels) => {
    const [reading, labels] = await Promise.all([read("all"), labelsOf(namespace)]);
    return judgeDeletionGuard({ ...reading, ...labels, namespace }, podLabels);
  };
}

async function readLabels({ cluster }: Session, name: string) {
  const found = await cluster.get(namespaces, { name }).catch(() => undefined);
  const labels = { ...found?.metadata?.labels, "kubernetes.io/metadata.name": name };
  return { labels, labelsKnown: found !== undefined };
}
