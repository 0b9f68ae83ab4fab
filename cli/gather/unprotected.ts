/**
 * Looks whether the eviction webhook can be called, and reads what the reconciler has recorded of it: that nothing asks a
 * budget, or that it is down.
 */
import { absent, hasCode } from "../../infra/errors.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import { disruptionBudgets, type DisruptionBudget } from "../../infra/kubernetes/custom-resources.ts";
import { visitEach } from "../../infra/slots.ts";
import { readConditions } from "../../reconciler/gates/record.ts";
import type { Unprotected } from "../decide/overview.ts";
import type { Session } from "../session.ts";
import { type createGuards, isRefusing } from "./guard.ts";

/** Reasons of the condition `Protecting` that concern the webhook, and not the budget's own content. */
const WEBHOOK: ReadonlySet<string> = new Set(["NoWebhook", "WebhookDown"]);

/** Namespaces that are looked at at once. */
const AT_ONCE = 4;

/**
 * One entry for budgets of a namespace with the same message; none if budgets may not be read. `places` are namespaces
 * with groups: a webhook that is down refuses evictions without a budget, too. What is seen counts before what is
 * recorded.
 */
export async function gatherUnprotected(
  { cluster, namespace }: Pick<Session, "cluster" | "namespace">,
  places: readonly string[],
  guards: ReturnType<typeof createGuards>,
): Promise<readonly Unprotected[]> {
  const query = namespace === "" ? {} : { namespace };
  const budgets = (await collect(cluster.list(disruptionBudgets, query)).catch(leaveOut)) ?? [];
  const found = budgets.flatMap(readUnprotected);
  const recorded = [...Map.groupBy(found, (one) => `${one.namespace} ${one.message}`).values()].flatMap((own) => {
    const [first] = own;
    return first ? [{ ...first, budgets: own.flatMap((one) => one.budgets) }] : [];
  });
  const seen: Unprotected[] = [];
  const known = new Set<string>();
  const all = [...new Set([...places, ...budgets.map(({ metadata }) => metadata.namespace ?? "")])];
  await visitEach(all, { atOnce: AT_ONCE }, async (place) => {
    const guard = await guards(place);
    if (guard.reason !== "NotSeen") known.add(place);
    const names = budgets.flatMap(({ metadata }) => (metadata.namespace === place ? (metadata.name ?? "") : []));
    const isTrouble = isRefusing(guard) || (names.length > 0 && WEBHOOK.has(guard.reason));
    if (isTrouble) seen.push({ namespace: place, budgets: names, reason: guard.reason, message: guard.message });
  });
  return [
    ...seen.toSorted((a, b) => (a.namespace < b.namespace ? -1 : 1)),
    ...recorded.filter((one) => !known.has(one.namespace)).map((one) => ({ ...one, isRecorded: true as const })),
  ];
}

function readUnprotected({ metadata: { namespace = "", name = "" }, status }: DisruptionBudget): Unprotected[] {
  const condition = readConditions(status).find(({ type }) => type === "Protecting");
  if (condition?.status !== "False" || !WEBHOOK.has(condition.reason)) return [];
  return [{ namespace, budgets: [name], reason: condition.reason, message: condition.message }];
}

function leaveOut(error: unknown): undefined {
  if (!hasCode(error, "Forbidden")) absent(error);
}
