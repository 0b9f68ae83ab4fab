/**
 * `/admission/pod-deletion`: the disruption budget judges the deletion of a pod as it judges an eviction, with the same
 * reservation (§5.12). The answer pins no UID: the API server sends the object that it deletes, and asks again if that
 * has changed. It fails closed, as for evictions. The match conditions of its configuration exempt controllers,
 * kubelets and pods with the annotation that permits a deletion: these deletions pass without a call.
 */
import * as z from "zod";
import type { BudgetMetrics } from "../../infra/metrics/metrics.ts";
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import { DELETION_PATH, deleteByHand, whyNotAsked } from "../../reconciler/budget/deletion.ts";
import { judged, NOT_NOW, verdict, VERDICTS } from "../../reconciler/budget/verdict.ts";
import type { Reserver } from "../../reconciler/budget/act/reserve.ts";
import type { Draft } from "../../reconciler/report/events.ts";
import type { AdmissionRequest, Webhook } from "../http/webhook.ts";
import { answerResult, denyEviction } from "./pod-eviction.ts";

interface PodDeletionTools {
  readonly reserver: Pick<Reserver, "reserve">;
  readonly metrics: BudgetMetrics;
  readonly emitEvents: (drafts: readonly Draft[]) => void;
}

export function createPodDeletion({ reserver, metrics, emitEvents }: PodDeletionTools): Webhook {
  return {
    name: "podDeletion",
    paths: [DELETION_PATH],
    handle: async (request, { deadlineAt, signal }) => {
      const deleted = readDeleted(request);
      if (typeof deleted === "string") return answerResult(judged(verdict("InvalidRequest", deleted)), metrics);
      // A deletecollection request has no name: the name comes from the pod.
      const { namespace, name, uid, creationTimestamp: createdAt, pod } = deleted;
      const { username = "", groups = [] } = request.userInfo ?? {};
      const pass = whyNotAsked({ username, groups, pod });
      if (pass) return { allowed: true, reason: pass };
      const { dryRun } = request;
      const reserving = reserver.reserve({ namespace, name, uid, createdAt, dryRun, deadlineAt, signal });
      const result = await metrics.deciding(reserving);
      const answer = answerResult(result, metrics);
      if (answer.allowed) return answer;
      const message = `${name} is not deleted: ${answer.message}; ${wayOut(result.verdict.reason, namespace, name)}`;
      const regarding = { kind: "Pod", namespace, name, uid } as const;
      const said = `${username || "somebody"} may not delete it: ${answer.message}`;
      if (!dryRun) emitEvents([{ regarding, type: "Warning", reason: "DeletionDenied", message: said }]);
      return { ...answer, message };
    },
    onFault: (_, { namespace = "", name = "" }) => ({
      ...denyEviction(NOT_NOW),
      message: `${NOT_NOW.message}; ${wayOut("NotNow", namespace, name)}`,
    }),
  };
}

/** The user's options after a refusal. */
function wayOut(reason: keyof typeof VERDICTS, namespace: string, name: string): string {
  const wait = VERDICTS[reason].code === 429 ? "try again later; " : "";
  return `${wait}to delete it all the same: ${deleteByHand(namespace, name || "POD")}`;
}

const IDENTIFIED = z.object({
  metadata: z.object({
    name: z.string().min(1),
    namespace: z.string().min(1),
    uid: z.string().min(1),
    creationTimestamp: z.string().min(1),
  }),
});

interface Deleted extends z.infer<typeof IDENTIFIED.shape.metadata> {
  readonly pod: PodObject;
}

/** The deleted pod, or the reason why this webhook does not judge the request. */
function readDeleted({ operation, subResource = "", resource, oldObject }: AdmissionRequest): Deleted | string {
  if (operation !== "DELETE") return `request operation is not delete, got: ${operation}`;
  if (subResource !== "" || resource.resource !== "pods")
    return `request is not for pods, got: ${[resource.resource, subResource].filter(Boolean).join("/")}`;
  const read = IDENTIFIED.safeParse(oldObject);
  if (!read.success) return "request did not include the pod that is deleted";
  return { ...read.data.metadata, pod: oldObject as PodObject };
}
