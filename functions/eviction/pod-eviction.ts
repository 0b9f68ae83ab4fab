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
import { type DisruptionResult, judged, NOT_NOW, verdict, type Verdict } from "../../reconciler/budget/verdict.ts";
import { EVICTION_PATHS, isProbe, PROBE_ANSWER } from "../../reconciler/budget/guard.ts";
import type { Reserver } from "../../reconciler/budget/act/reserve.ts";
import type { AdmissionRequest, Answer, Webhook } from "../http/webhook.ts";
import { answerResult, denyEviction } from "./answer-result.ts";

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
  const respond = (result: DisruptionResult, eviction: Eviction, mutating: boolean): Answer => {
    const answer = answerResult(result, metrics);
    const patch = mutating && result.outcome === "allowed" ? pinPod(result.verdict, eviction) : undefined;
    return { ...answer, ...(patch && { patch }) };
  };
  return {
    name: "podEviction",
    paths: EVICTION_PATHS,
    handle: async (request, { path, deadlineAt, signal }) => {
      // The probe comes first: its answer proves that the webhook is called, and allows nothing.
      if (isProbe(request.object))
        return { allowed: false, code: 400, message: PROBE_ANSWER, reason: "Probe", log: { reason: "probe" } };
      const eviction = readEviction(request.object);
      const mutating = path === MUTATING_PATH && eviction.options !== "unreadable";
      const refused = checkRequest(request);
      if (refused) return respond(judged(refused), eviction, mutating);
      const { namespace = "", name = "" } = request;
      const { uid } = eviction;
      const disruption = {
        namespace,
        name,
        uid,
        unpinned: !mutating && uid === undefined,
        dryRun: request.dryRun || eviction.dryRun,
      };
      return respond(
        await metrics.deciding(reserver.reserve({ ...disruption, deadlineAt, signal })),
        eviction,
        mutating,
      );
    },
    onFault: () => denyEviction(NOT_NOW),
  };
}

/** The fields of an Eviction that matter, equal in policy/v1 and v1beta1 (§5.1.1). */
interface Eviction {
  /** `kubectl drain --dry-run=server` sets it in the Eviction, not in the request. */
  readonly dryRun: boolean;
  /** The UID that the client has pinned it to. */
  readonly uid: string | undefined;
  /** Which part of `deleteOptions.preconditions` exists, for the path of the patch. */
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
 * The JSON Patch (RFC 6902) that pins an allowed eviction to the judged pod; undefined if it is pinned already. A pod
 * that no budget selects is pinned as well, as its successor may have other labels.
 */
function pinPod({ objects }: Verdict, { uid, options }: Eviction): Answer["patch"] {
  const pod = objects.find(({ kind }) => kind === "Pod")?.uid;
  if (pod === undefined || uid !== undefined) return undefined;
  const add = (path: string, value: unknown): Answer["patch"] => [{ op: "add", path: `/deleteOptions${path}`, value }];
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
