/** Whether a webhook guards the pods of a namespace: what is registered, and a dry-run eviction that asks it. */
import { hasCode, messageOf } from "../../infra/errors.ts";
import { evictions, namespaces } from "../../infra/kubernetes/resources.ts";
import { once } from "../../infra/once.ts";
import { readHooks } from "../../reconciler/budget/act/read-guard.ts";
import type { BudgetPod } from "../../reconciler/budget/budget-pod.ts";
import {
  judgeGuard,
  PROBE,
  PROBE_ANSWER,
  type EvictionHook,
  type Guard,
  type Probe,
} from "../../reconciler/budget/guard.ts";
import { judgeDisruption } from "../../reconciler/plan/budget-verdicts.ts";
import type { World } from "../../reconciler/plan/world.ts";
import { explainError } from "../decide/explain-error.ts";
import type { Session } from "../session.ts";

/** Milliseconds: the port repeats what is answered with Retry-After until then. */
const PROBE_MS = 5000;

/** A pod by which the webhook is asked; its namespace alone, where there is none. */
export type Guarded = Pick<BudgetPod, "namespace"> & { readonly name?: string; readonly uid?: string };

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
export function createGuards(session: Session): (pod: Guarded) => Promise<SeenGuard> {
  const read = once(async (_all: "all") => await readHooks({ cluster: session.cluster }));
  return once(
    async (pod) => {
      const [reading, { labels, labelsKnown }, probe] = await Promise.all([
        read("all"),
        readLabels(session, pod.namespace),
        read("all").then(({ hooks = [] }) => ask(session, pod, hooks)),
      ]);
      const guard = judgeGuard({ ...reading, namespace: pod.namespace, labels, labelsKnown, probe });
      return probe.result === "notTried" ? { ...guard, notTried: probe.why } : guard;
    },
    ({ namespace }) => namespace,
  );
}

async function readLabels({ cluster }: Session, name: string) {
  const found = await cluster.get(namespaces, { name }).catch(() => undefined);
  const labels = { ...found?.metadata?.labels, "kubernetes.io/metadata.name": name };
  return { labels, labelsKnown: found !== undefined };
}

/** Evicts nothing: it is a dry run, bound to the pod's UID, and the webhook refuses it. */
async function ask({ cluster }: Session, pod: Guarded, hooks: readonly EvictionHook[]): Promise<Probe> {
  const { namespace, name, uid } = pod;
  if (name === undefined || uid === undefined) return { result: "notTried", why: "there is no pod to ask with" };
  const metadata = { namespace, name, annotations: { [PROBE]: "true" } };
  const deleteOptions = { preconditions: { uid }, dryRun: ["All"] } as const;
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions } as const;
  try {
    await cluster.create(evictions, { namespace, name, subresource: "eviction", body }, { deadlineMs: PROBE_MS });
    return { result: "allowed" };
  } catch (error) {
    return readAnswer(error, hooks);
  }
}

function readAnswer(error: unknown, hooks: readonly EvictionHook[]): Probe {
  const why = messageOf(error);
  const isOurs = hooks.some(({ name }) => why.includes(`admission webhook "${name}" denied the request`));
  if (isOurs || why.includes(PROBE_ANSWER)) return { result: "answered" };
  if (hasCode(error, "WebhookFailed") || /failed calling webhook/.test(why)) return { result: "failed", why };
  const { message, hint } = explainError(error);
  return hasCode(error, "Forbidden") && hint !== undefined
    ? { result: "notTried", why: message }
    : { result: "unclear", why: message };
}
