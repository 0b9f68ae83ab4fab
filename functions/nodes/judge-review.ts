/** Judges a TokenReview: does the token belong to an agent's pod? (NW9, NW10) */
import * as z from "zod";
import { AUDIENCE } from "../../reconciler/nodes/routes.ts";
import { type NodeAnswer, refuseNode } from "./node-answer.ts";

/** The pod that a token is bound to, and its node if the API server reports it (Kubernetes 1.30 and later). */
export interface TokenPod {
  readonly name: string;
  readonly uid: string;
  readonly nodeName?: string;
  readonly nodeUid?: string;
}

/** The ServiceAccount of the agents. */
export interface AgentAccount {
  readonly namespace: string;
  readonly account: string;
}

const REVIEWED = z.looseObject({
  authenticated: z.literal(true),
  audiences: z.array(z.string()),
  error: z.literal("").optional(),
  user: z.looseObject({ username: z.string(), extra: z.record(z.string(), z.array(z.string())).optional() }),
});

/**
 * The pod that the token belongs to, or the refusal: 401 for a token that the API server does not authenticate, 403 for
 * one that is not an agent's. An error refuses even beside `authenticated`. A missing list of audiences refuses as
 * well: the reviewer has ignored ours.
 */
export function judgeReview(status: unknown, { namespace, account }: AgentAccount): TokenPod | NodeAnswer {
  const reviewed = REVIEWED.safeParse(status);
  if (!reviewed.success || !reviewed.data.audiences.includes(AUDIENCE))
    return refuseNode("Unauthorized", "the token is not valid here");
  const { username, extra = {} } = reviewed.data.user;
  if (username !== `system:serviceaccount:${namespace}:${account}`)
    return refuseNode("Forbidden", `${username} is not the ServiceAccount of the agents`);
  const only = (key: string): string | undefined => {
    const values = extra[`authentication.kubernetes.io/${key}`] ?? [];
    return values.length === 1 ? values[0] : undefined;
  };
  const [name, uid, nodeName, nodeUid] = [only("pod-name"), only("pod-uid"), only("node-name"), only("node-uid")];
  if (name === undefined || uid === undefined) return refuseNode("Forbidden", "the token is not bound to a pod");
  return { name, uid, ...(nodeName !== undefined && { nodeName }), ...(nodeUid !== undefined && { nodeUid }) };
}
