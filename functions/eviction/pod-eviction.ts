/**
 * `/admission/mutate-pod-eviction`: no pod is evicted that its zone-aware budget needs (§5.1). What is allowed is reserved first, and bound to the
 * UID of the pod that was judged: the API server looks the pod up by its name only after it has asked us, for up to 10 s.
 *
 *   asked as a mutating webhook   -> allowed, with a patch that sets deleteOptions.preconditions.uid
 *   asked as a validating webhook -> allowed, if the Eviction carries the UID; otherwise once in 15 s, and not while the pod is terminating
 */
import * as z from "zod";
import type { BudgetMetrics } from "../../infra/metrics/budget-metrics.ts";
import { hasCode } from "../../infra/errors.ts";
import { isAllowed, verdict, VERDICTS, type Verdict } from "../../reconciler/budget/verdict.ts";
import { type ReserveResult, NOT_NOW, type Reserver } from "../../reconciler/reservations/reserve.ts";
import type { AdmissionRequest, Answer, Webhook } from "../http/webhook.ts";

export interface PodEvictionTools {
  readonly reserver: Reserver;
  readonly metrics: BudgetMetrics;
}

/** Only an answer to a mutating webhook may carry a patch, and a review does not say which of the two it is for. */
const MUTATING_PATH = "/admission/mutate-pod-eviction";

export function createPodEviction({ reserver, metrics }: PodEvictionTools): Webhook {
  const tell = (decided: ReserveResult, eviction: Eviction, mutating: boolean): Answer => {
    const { code, metric } = VERDICTS[decided.verdict.reason];
    metrics.decided({ reason: metric, status: code });
    // A lost race is everyday; what else keeps us from deciding is a fault, answered alike by `onFault`.
    if (decided.cause !== undefined && !hasCode(decided.cause, "Conflict")) throw decided.cause;
    const patch = mutating ? pinPod(decided.verdict, eviction) : undefined;
    return { ...answer(decided.verdict), ...(patch && { patch }) };
  };
  return {
    name: "podEviction",
    paths: ["/admission/pod-eviction", "/pods/eviction", MUTATING_PATH],
    handle: async (request, { path, deadlineAt, signal }) => {
      const eviction = readEviction(request.object);
      const mutating = path === MUTATING_PATH && eviction.options !== "unreadable";
      const refused = checkRequest(request);
      if (refused) return tell({ verdict: refused }, eviction, mutating);
      const { namespace = "", name = "" } = request;
      const { uid } = eviction;
      const ask = { namespace, name, uid, unpinned: !mutating && uid === undefined, dryRun: request.dryRun || eviction.dryRun };
      return tell(await metrics.deciding(reserver.reserve({ ...ask, deadlineAt, signal })), eviction, mutating);
    },
    onFault: () => answer(verdict("NotNow", NOT_NOW)),
  };
}

/** What is read of an Eviction; policy/v1 and v1beta1 have it alike (§5.1.1). */
interface Eviction {
  /** `kubectl drain --dry-run=server` says it in the Eviction alone, not in the request. */
  readonly dryRun: boolean;
  /** The UID that the client has bound it to. */
  readonly uid: string | undefined;
  /** How much of `deleteOptions.preconditions` is there, for a patch to build on. */
  readonly options: "none" | "deleteOptions" | "preconditions" | "unreadable";
}

const EVICTION = z.object({
  deleteOptions: z
    .object({
      dryRun: z.array(z.string()).nullish(),
      preconditions: z.object({ uid: z.string().nullish() }).nullish(),
    })
    .nullish(),
});

function readEviction(object: unknown): Eviction {
  const read = EVICTION.safeParse(object);
  if (!read.success) return { dryRun: false, uid: undefined, options: "unreadable" };
  const { deleteOptions } = read.data;
  const preconditions = deleteOptions?.preconditions;
  return {
    dryRun: deleteOptions?.dryRun?.includes("All") ?? false,
    uid: preconditions?.uid ?? undefined,
    options: preconditions ? "preconditions" : deleteOptions ? "deleteOptions" : "none",
  };
}

/**
 * The JSON Patch (RFC 6902) that binds an allowed eviction to the pod that was judged; undefined if it is bound already. A pod that no budget is
 * about is bound, too: its successor may have other labels.
 */
function pinPod(said: Verdict, { uid, options }: Eviction): Answer["patch"] {
  const pod = said.objects.find(({ kind }) => kind === "Pod")?.uid;
  if (pod === undefined || uid !== undefined || !isAllowed(said)) return undefined;
  const add = (path: string, value: unknown): Answer["patch"] => [{ op: "add", path: `/deleteOptions${path}`, value }];
  if (options === "preconditions") return add("/preconditions/uid", pod);
  return options === "deleteOptions" ? add("/preconditions", { uid: pod }) : add("", { preconditions: { uid: pod } });
}

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
  return ["PodNotReady", "OtherPod"].includes(said.reason) ? { ...told, warnings: [said.message] } : told;
}
