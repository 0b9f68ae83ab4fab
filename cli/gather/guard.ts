/**
 * Asks the API server about evictions, by dry runs: whether a webhook judges them, and whether a pod may be
 * evicted. Reads what the reconciler has recorded of the webhook.
 */
import { absent, hasCode, messageOf } from "../../infra/errors.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import { disruptionBudgets, type DisruptionBudget } from "../../infra/kubernetes/custom-resources.ts";
import { evictions } from "../../infra/kubernetes/resources.ts";
import { once } from "../../infra/once.ts";
import { readHooks, seeGuard } from "../../reconciler/budget/act/see-guard.ts";
import type { Guard } from "../../reconciler/budget/guard.ts";
import { readConditions } from "../../reconciler/gates/record.ts";
import type { Pod } from "../../reconciler/model/pod.ts";
import { explainError } from "../decide/explain-error.ts";
import type { EvictionAnswer } from "../decide/explain-group.ts";
import type { Unprotected } from "../decide/overview.ts";
import type { Session } from "../session.ts";

/** Milliseconds: until then, the port repeats calls that are answered with Retry-After. */
const PROBE_MS = 5000;

/** The guard of evictions in a namespace. Never rejects. */
type Guards = (namespace: string) => Promise<Guard>;

/** The webhook cannot be called, and fails closed: every eviction in the namespace is refused, with a budget or without. */
export const isRefusing = ({ reason }: Guard): boolean => reason === "WebhookDown";

/** Reads the registered webhooks once, and asks once in each namespace. */
export function createGuards({ cluster }: Session): Guards {
  const registered = once(async () => await readHooks({ cluster }));
  const asking = {
    cluster,
    call: { deadlineMs: PROBE_MS },
    describe: (error: unknown): string => explainError(error).message,
  };
  return once(async (namespace: string) => await seeGuard(namespace, await registered(), asking));
}

/**
 * Whether a pod may be evicted now, by all webhooks and PodDisruptionBudgets. Not to be asked beside the original: its
 * webhook counts a pod as evicted in a dry run, too. Never rejects: without an answer it says why there is none.
 */
export async function askEviction(
  { cluster }: Session,
  { namespace, name, uid }: Pick<Pod, "namespace" | "name" | "uid">,
): Promise<EvictionAnswer> {
  const metadata = { namespace, name };
  const body = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata,
    deleteOptions: { preconditions: { uid }, dryRun: ["All"] },
  } as const;
  try {
    await cluster.create(evictions, { ...metadata, subresource: "eviction", body }, { deadlineMs: PROBE_MS });
    return { kind: "allowed" };
  } catch (error) {
    const { message, hint } = explainError(error);
    const isRefusal = hasCode(error, "Throttled", "Invalid") || (hasCode(error, "Forbidden") && hint === undefined);
    return isRefusal ? { kind: "refused", message: messageOf(error) } : { kind: "unknown", why: message };
  }
}

/** Reasons of the condition `Protecting` that concern the webhook, and not the budget's own content. */
const WEBHOOK: ReadonlySet<string> = new Set(["NoWebhook", "WebhookDown"]);

/** What the reconciler has recorded; one entry for budgets of a namespace with the same message; none if budgets may not be read. */
export async function gatherUnprotected({
  cluster,
  namespace,
}: Pick<Session, "cluster" | "namespace">): Promise<readonly Unprotected[]> {
  const query = namespace === "" ? {} : { namespace };
  const budgets =
    (await collect(cluster.list(disruptionBudgets, query)).catch((error: unknown) => {
      if (!hasCode(error, "Forbidden")) absent(error);
    })) ?? [];
  const found = budgets.flatMap(readUnprotected);
  return [...Map.groupBy(found, (one) => `${one.namespace} ${one.message}`).values()].flatMap((own) => {
    const [first] = own;
    return first ? [{ ...first, budgets: own.flatMap((one) => one.budgets) }] : [];
  });
}

function readUnprotected({ metadata: { namespace = "", name = "" }, status }: DisruptionBudget): Unprotected[] {
  const condition = readConditions(status).find(({ type }) => type === "Protecting");
  if (condition?.status !== "False" || !WEBHOOK.has(condition.reason)) return [];
  return [{ namespace, budgets: [name], reason: condition.reason, message: condition.message }];
}
