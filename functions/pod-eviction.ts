/** `/admission/pod-eviction`: no pod is evicted that its zone-aware budget needs [5.1]. What is allowed is reserved first. */
import * as z from "zod";
import type { BudgetMetrics } from "../infra/budget-metrics.ts";
import { hasCode } from "../infra/errors.ts";
import { isAllowed, verdict, VERDICTS, type Verdict } from "../reconciler/budget/verdict.ts";
import { type Decided, NOT_NOW, type Reserver } from "../reconciler/reserve.ts";
import type { AdmissionRequest, Answer, Webhook } from "./handler.ts";

export interface PodEvictionTools {
  readonly reserver: Reserver;
  readonly metrics: BudgetMetrics;
}

export function createPodEviction({ reserver, metrics }: PodEvictionTools): Webhook {
  const tell = (decided: Decided): Answer => {
    const { code, metric } = VERDICTS[decided.verdict.reason];
    metrics.decided({ reason: metric, status: code });
    // A lost race is everyday; what else keeps us from deciding is a fault, answered alike by `onFault`.
    if (decided.cause !== undefined && !hasCode(decided.cause, "Conflict")) throw decided.cause;
    return answer(decided.verdict);
  };
  return {
    name: "podEviction",
    paths: ["/admission/pod-eviction", "/pods/eviction"],
    handle: async (request, { deadlineAt, signal }) => {
      const refused = checkRequest(request);
      if (refused) return tell({ verdict: refused });
      const { namespace = "", name = "" } = request;
      const dryRun = request.dryRun || isDryEviction(request.object);
      return tell(await metrics.deciding(reserver.reserve({ namespace, name, dryRun, deadlineAt, signal })));
    },
    onFault: () => answer(verdict("NotNow", NOT_NOW)),
  };
}

/** `kubectl drain --dry-run=server` says it in the Eviction alone, not in the request. */
function isDryEviction(object: unknown): boolean {
  const eviction = DRY_EVICTION.safeParse(object);
  return eviction.success && eviction.data.deleteOptions.dryRun.includes("All");
}

const DRY_EVICTION = z.looseObject({ deleteOptions: z.looseObject({ dryRun: z.array(z.string()) }) });

/** Else the Eviction itself is not read: policy/v1 and v1beta1 both work [5.1.1]. */
function checkRequest({ operation, subResource = "", namespace = "", name = "" }: AdmissionRequest): Verdict | undefined {
  if (operation !== "CREATE") return verdict("InvalidRequest", `request operation is not create, got: ${operation}`);
  if (subResource !== "eviction") return verdict("InvalidRequest", `request SubResource is not eviction, got: ${subResource}`);
  if (namespace === "" || name === "") return verdict("InvalidRequest", "request did not include both a namespace and a name");
  return undefined;
}

function answer(said: Verdict): Answer {
  const { code, log } = VERDICTS[said.reason];
  const budget = said.objects.find(({ kind }) => kind === "ZoneAwarePodDisruptionBudget")?.name;
  const more = { reason: log, ...(budget !== undefined && { budget }) };
  if (!isAllowed(said)) return { allowed: false, code, message: said.message, reason: said.reason, log: more };
  const told = { allowed: true, reason: said.reason, log: { ...more, reason: said.reason === "Allowed" ? said.message : log } };
  return said.reason === "PodNotReady" ? { ...told, warnings: [said.message] } : told;
}
