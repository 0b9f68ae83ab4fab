/** Whether a webhook guards the pods of a namespace: what is registered, and a dry-run eviction that asks it. */
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

/** Milliseconds: the port repeats what is answered with Retry-After until then. */
const PROBE_MS = 5000;

export interface SeenGuard extends Guard {
  /** Why no dry-run eviction was tried; absent if one was. */
  readonly notTried?: string;
}

/** Undefined for a pod that no budget selects. */
export async function gatherGuard(
  guards: ReturnType<typeof createGuards>,
  pod: BudgetPod,
  world: World,
): Promise<SeenGuard | undefined> {
  return judgeDisruption(world, pod).verdict.reason === "PodNotInScope" ? undefined : await guards(pod);
}

/** Reads what is registered once, and asks once for each namespace. Never rejects. */
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

/** What guards deletions of pods with these labels in a namespace; reads once. Never rejects. */
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
