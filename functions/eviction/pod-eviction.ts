/**
 * `/admission/mutate-pod-eviction`: allows an eviction only if the pod's zone-aware budget allows it (§5.1). An allowed
 * eviction is reserved first and pinned to the UID of the judged pod, because the API server looks the pod up by name
 * after the admission, for up to 10 s.
 *
 *   called as a mutating webhook   -> allowed, with a patch that sets deleteOptions.preconditions.uid
 *   called as a validating webhook -> allowed if the Eviction carries the UID; otherwise once in 15 s, and not while the pod is terminating
 */
import * as z from "zod";
import type { BudgetMetrics } from "../../infra/metrics/metrics.ts";
import {
  type DisruptionResult,
  judged,
  NOT_NOW,
  verdict,
  type Verdict,
  VERDICTS,
} from "../../reconciler/budget/verdict.ts";
import { EVICTION_PATHS, PROBE, PROBE_ANSWER } from "../../reconciler/budget/guard.ts";
import type { Reserver } from "../../reconciler/budget/act/reserve.ts";
import type { AdmissionRequest, Answer, Webhook } from "../http/webhook.ts";
import { hasCode } from "../../infra/errors.ts";

interface PodEvictionTools {
  readonly reserver: Reserver;
  readonly metrics: BudgetMetrics;
}

/**
 * It needs its own path: only an answer to a mutating webhook may carry a patch, and a review does not say which kind
 * of webhook it is sent to.
 */
const MUTATING_PATH = "/admission/mutate-pod-eviction";

export function createPodEviction({ reserver, metrics }: PodEvictionTools): Webhook {
  return {
    name: "podEviction",
    paths: EVICTION_PATHS,
    handle: async (request, { path, deadlineAt, signal }) => {
      const eviction = readEviction(request.object);
      // The probe comes first: its answer proves that the webhook is called, and allows nothing.
      if (eviction.isProbe)
        return { allowed: false, code: 400, message: PROBE_ANSWER, reason: "Probe", log: { reason: "probe" } };
      const refused = checkRequest(request);
      if (refused) return answerResult(judged(refused), metrics);
      const { namespace = "", name = "" } = request;
      const { uid } = eviction;
      const mayPatch = path === MUTATING_PATH && eviction.options !== "unreadable";
      const unpinned = !mayPatch && uid === undefined;
      const dryRun = request.dryRun || eviction.dryRun;
      const result = await metrics.deciding(
        reserver.reserve({ namespace, name, uid, unpinned, dryRun, deadlineAt, signal }),
      );
      const answer = answerResult(result, metrics);
      return answer.allowed && mayPatch ? { ...answer, ...pinPod(result.verdict, eviction) } : answer;
    },
    onFault: () => denyEviction(NOT_NOW),
  };
}

/** The fields of an Eviction that matter, equal in policy/v1 and v1beta1 (§5.1.1). */
interface Eviction {
  /** It only asks whether this webhook answers (guard.ts). */
  readonly isProbe: boolean;
  /** `kubectl drain --dry-run=server` sets it in the Eviction, not in the request. */
  readonly dryRun: boolean;
  readonly uid: string | undefined;
  /** Which part of `deleteOptions.preconditions` exists, for the path of the patch. */
  readonly options: "none" | "deleteOptions" | "preconditions" | "unreadable";
}

const PROBING = z.object({ metadata: z.object({ annotations: z.object({ [PROBE]: z.string() }) }) });
const EVICTION = z.object({
  deleteOptions: z
    .object({
      dryRun: z.array(z.string()).nullish(),
      preconditions: z.object({ uid: z.string().nullish() }).nullish(),
    })
    .nullish(),
});

function readEviction(object: unknown): Eviction {
  const isProbe = PROBING.safeParse(object).success;
  const read = EVICTION.safeParse(object);
  if (!read.success) return { isProbe, dryRun: false, uid: undefined, options: "unreadable" };
  const { deleteOptions } = read.data;
  const preconditions = deleteOptions?.preconditions;
  return {
    isProbe,
    dryRun: deleteOptions?.dryRun?.includes("All") ?? false,
    uid: preconditions?.uid ?? undefined,
    options: preconditions ? "preconditions" : deleteOptions ? "deleteOptions" : "none",
  };
}

/**
 * The JSON Patch (RFC 6902) that pins an allowed eviction to the judged pod, unless it is pinned already. A pod that no
 * budget selects is pinned as well, as its successor may have other labels.
 */
function pinPod({ objects }: Verdict, { uid, options }: Eviction): Pick<Answer, "patch"> {
  const pod = objects.find(({ kind }) => kind === "Pod")?.uid;
  if (pod === undefined || uid !== undefined) return {};
  const add = (path: string, value: unknown) => ({ patch: [{ op: "add", path: `/deleteOptions${path}`, value }] });
  if (options === "preconditions") return add("/preconditions/uid", pod);
  return options === "deleteOptions" ? add("/preconditions", { uid: pod }) : add("", { preconditions: { uid: pod } });
}

function checkRequest({
  operation,
  subResource = "",
  namespace = "",
  name = "",
}: AdmissionRequest): Verdict | undefined {
  if (operation !== "CREATE") return verdict("InvalidRequest", `request operation is not create, got: ${operation}`);
  if (subResource !== "eviction")
    return verdict("InvalidRequest", `request SubResource is not eviction, got: ${subResource}`);
  if (namespace === "" || name === "")
    return verdict("InvalidRequest", "request did not include both a namespace and a name");
  return undefined;
}

/**
 * Counts what a disruption budget has decided about an eviction or a deletion of a pod, and answers it. Throws the cause
 * of a fault, which `onFault` answers as "not now".
 */
export function answerResult(result: DisruptionResult, metrics: Pick<BudgetMetrics, "decided">): Answer {
  const { code, metric } = VERDICTS[result.verdict.reason];
  metrics.decided({ reason: metric, status: code });
  switch (result.outcome) {
    case "allowed":
      return allow(result.verdict);
    case "denied":
      return denyEviction(result.verdict);
    case "undecided":
      // A lost race is ordinary; any other cause is a fault.
      if (!hasCode(result.cause, "Conflict")) throw result.cause;
      return denyEviction(result.verdict);
    default:
      return result satisfies never;
  }
}

/** 429 for "not now", 400 for an error that a retry does not fix. */
export function denyEviction(denied: Verdict): Answer {
  const { reason, message } = denied;
  return { allowed: false, code: VERDICTS[reason].code, message, reason, log: logFields(denied) };
}

function allow(allowed: Verdict): Answer {
  const { reason, message } = allowed;
  const fields = logFields(allowed);
  const answer = { allowed: true, reason, log: reason === "Allowed" ? { ...fields, reason: message } : fields };
  return ["PodNotReady", "OtherPod"].includes(reason) ? { ...answer, warnings: [message] } : answer;
}

function logFields({ reason, objects }: Verdict): NonNullable<Answer["log"]> {
  const budget = objects.find(({ kind }) => kind === "ZoneAwarePodDisruptionBudget")?.name;
  return { reason: VERDICTS[reason].log, ...(budget !== undefined && { budget }) };
}
