/**
 * `/admission/zpdb-validation`: a zone-aware budget that could not be understood is refused when it is written (§6).
 */
import { fieldsOf } from "../../infra/json.ts";
import { parseBudget } from "../../reconciler/budget/zpdb.ts";
import type { Answer, Webhook } from "../http/webhook.ts";

export function createZpdbValidation(): Webhook {
  return {
    name: "zpdbValidation",
    paths: ["/admission/zpdb-validation"],
    handle: async ({ object }) => {
      if (object === undefined || object === null) return denyBudget("unexpected end of JSON input");
      const { kind } = fieldsOf(object);
      if (typeof kind !== "string" || kind === "") return denyBudget("Object 'Kind' is missing in the object");
      const budget = parseBudget(object);
      return "problem" in budget ? denyBudget(budget.problem) : { allowed: true, reason: "Valid" };
    },
    onFault: () => denyBudget("the budget could not be checked"),
  };
}

function denyBudget(message: string): Answer {
  return { allowed: false, code: 400, reason: "Invalid", message };
}
