/**
 * `/admission/pod-deletion`: the disruption budget judges the deletion of a pod as it judges an eviction, with the same
 * reservation (§5.12). The answer pins no UID: the API server sends the object that it deletes, and asks again if that
 * has changed. It fails closed, as for evictions. The match conditions of its configuration exempt controllers,
 * kubelets and pods with the annotation that permits a deletion: these deletions pass without a call.
 */
import * as z from "zod";
import type { BudgetMetrics } from "../../infra/metrics/metrics.ts";
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import { judged, NOT_NOW, verdict, VERDICTS } from "../../reconciler/budget/verdict.ts";
import type { Reserver } from "../../reconciler/budget/act/reserve.ts";
import type { Draft } from "../../reconciler/report/events.ts";
import type { AdmissionRequest, Webhook } from "../http/webhook.ts";
import { answerResult, denyEviction } from "./pod-eviction.ts";
import { firstOf, type Rule } from "../../infra/rules.ts";
import { ANNOTATIONS, LABELS } from "../../reconciler/model/annotations.ts";

interface PodDeletionTools {
  readonly reserver: Pick<Reserver, "reserve">;
  readonly metrics: BudgetMetrics;
  readonly emitEvents: (drafts: readonly Draft[]) => void;
}

export function createPodDeletion({ reserver, metrics, emitEvents }: PodDeletionTools): Webhook {
  return {
    name: "podDeletion",
    paths: ["/admission/pod-deletion"],
    handle: async (request, { deadlineAt, signal }) => {
      const deleted = readDeleted(request);
      if (typeof deleted === "string") return answerResult(judged(verdict("InvalidRequest", deleted)), metrics);
      // A deletecollection request has no name: the name comes from the pod.
      const { namespace, name, uid, pod } = deleted;
      const { username = "", groups = [] } = request.userInfo ?? {};
      const pass = whyNotAsked({ username, groups, pod });
      if (pass) return { allowed: true, reason: pass };
      const { dryRun } = request;
      const reserving = reserver.reserve({ namespace, name, uid, dryRun, deadlineAt, signal });
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

function wayOut(reason: keyof typeof VERDICTS, namespace: string, name: string): string {
  const wait = VERDICTS[reason].code === 429 ? "try again later; " : "";
  return `${wait}to delete it all the same: ${deleteByHand(namespace, name || "POD")}`;
}

const IDENTIFIED = z.object({
  metadata: z.object({
    name: z.string().min(1),
    namespace: z.string().min(1),
    uid: z.string().min(1),
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

export interface Deletion {
  /** The user who deletes, as the API server knows it. */
  readonly username: string;
  readonly groups: readonly string[];
  readonly pod: PodObject;
}

export type NotAsked =
  | "NoRolloutGroup"
  | "NoStatefulSet"
  | "GoneAlready"
  | "ByController"
  | "ByKubelet"
  | "ByReconciler"
  | "ByHand";

type DeletionRule = Rule<[deletion: Deletion], NotAsked>;

const inGroup: DeletionRule = ({ pod }) =>
  pod.metadata?.labels?.[LABELS.rolloutGroup] === undefined ? "NoRolloutGroup" : undefined;

/** Pods of a StatefulSet of another API group are others' to guard. */
const ofStatefulSet: DeletionRule = ({ pod }) => {
  const controller = pod.metadata?.ownerReferences?.find((owner) => owner.controller);
  return controller?.kind === "StatefulSet" && controller.apiVersion.startsWith("apps/") ? undefined : "NoStatefulSet";
};

/**
 * The deletion makes nothing unavailable: the pod is being deleted already, or no longer runs. A kubelet ends each
 * deletion by another one.
 */
const stillThere: DeletionRule = ({ pod: { metadata, status } }) =>
  metadata?.deletionTimestamp !== undefined || ["Succeeded", "Failed"].includes(status?.phase ?? "")
    ? "GoneAlready"
    : undefined;

/**
 * The StatefulSet, namespace and job controllers, garbage collectors, taint eviction: with one account each, or one
 * for all.
 */
const byController: DeletionRule = ({ username }) =>
  username.startsWith("system:serviceaccount:kube-system:") ||
  ["system:kube-controller-manager", "system:kube-scheduler", "system:apiserver"].includes(username)
    ? "ByController"
    : undefined;

const byKubelet: DeletionRule = ({ groups }) => (groups.includes("system:nodes") ? "ByKubelet" : undefined);

/** The reconciler, in any namespace (`NAMESPACES`): it has asked the budget, and reserved the pod. */
const byReconciler: DeletionRule = ({ username }) =>
  /^system:serviceaccount:[^:]+:zonewise-reconciler$/.test(username) ? "ByReconciler" : undefined;

const byHand: DeletionRule = ({ pod }) =>
  pod.metadata?.annotations?.[ANNOTATIONS.deleteByHand] === "true" ? "ByHand" : undefined;

/**
 * The first rule that lets the deletion pass unasked; undefined if the budget decides: about a running pod of a rollout
 * group, and anyone who is no controller of the cluster. The conditions of the webhook say the same without a call
 * (infra/manifests/pod-deletion-webhook), so that a configuration without them stops no controller.
 */
export const whyNotAsked = firstOf<[Deletion], NotAsked>([
  inGroup,
  ofStatefulSet,
  stillThere,
  byHand,
  byController,
  byKubelet,
  byReconciler,
]);

/**
 * The command that lets a person delete a guarded pod. Its successor lacks the annotation, unless the template has it.
 */
const deleteByHand = (namespace: string, pod: string): string =>
  `kubectl -n ${namespace} annotate pod ${pod} ${ANNOTATIONS.deleteByHand}=true`;
