/** Reads what the reconciler has recorded of the eviction webhook: that nothing asks a budget, or that it is down. */
import { absent, hasCode } from "../../infra/errors.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import { disruptionBudgets, type DisruptionBudget } from "../../infra/kubernetes/custom-resources.ts";
import { readConditions } from "../../reconciler/gates/record.ts";
import type { Unprotected } from "../decide/unprotected.ts";
import type { Session } from "../session.ts";

/** Reasons of the condition `Protecting` that concern the webhook, and not the budget's own content. */
const WEBHOOK: ReadonlySet<string> = new Set(["NoWebhook", "WebhookDown"]);

/** One entry for budgets of a namespace with the same message; none if budgets may not be read. */
export async function gatherUnprotected({ cluster, namespace }: Session): Promise<readonly Unprotected[]> {
  const query = namespace === "" ? {} : { namespace };
  const budgets = await collect(cluster.list(disruptionBudgets, query)).catch(leaveOut);
  const found = (budgets ?? []).flatMap(readUnprotected);
  return [...Map.groupBy(found, ({ namespace, message }) => `${namespace} ${message}`).values()].flatMap((own) => {
    const [first] = own;
    return first ? [{ ...first, budgets: own.flatMap((one) => one.budgets) }] : [];
  });
}

function readUnprotected({ metadata: { namespace = "", name = "" }, status }: DisruptionBudget): Unprotected[] {
  const condition = readConditions(status).find(({ type }) => type === "Protecting");
  if (condition?.status !== "False" || !WEBHOOK.has(condition.reason)) return [];
  return [{ namespace, budgets: [name], reason: condition.reason, message: condition.message }];
}

function leaveOut(error: unknown): undefined {
  if (!hasCode(error, "Forbidden")) absent(error);
}
