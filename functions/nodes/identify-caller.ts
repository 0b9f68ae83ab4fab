/**
 * Identifies the caller of the node API: an agent's pod that runs on the node it speaks for.
 *
 *   headers --> a token for our audience --> TokenReview --> the pod, live --> the Node, live
 *    400          401                         401, 403         403              403
 *
 * Nothing is cached: each request asks the API server.
 */
import * as z from "zod";
import type { IncomingHttpHeaders } from "node:http";
import { absent } from "../../infra/errors.ts";
import { type Node, nodes, pods, tokenReviews } from "../../infra/kubernetes/resources.ts";
import { isTokenFor } from "../../infra/kubernetes/tokens.ts";
import { AUDIENCE, HEADERS } from "../../reconciler/nodes/routes.ts";
import { type NodeAnswer, type NodeRequest, refuseNode } from "./node-answer.ts";

interface Identified {
  readonly node: Node;
}

interface Claim {
  readonly nodeName: string;
  readonly nodeUid: string;
  readonly token: string;
}

/** What a caller is judged with: the cluster, the agents' namespace, and the bounds of the request. */
type Judging = Pick<NodeRequest, "cluster" | "namespace" | "call">;

/** The ServiceAccount of the agents, as in the original. */
const AGENT_ACCOUNT = "brupop-agent-service-account";

/**
 * Resolves with the Node that the caller speaks for, or with the refusal; rejects if the API server could not be asked.
 */
export async function identifyCaller(headers: IncomingHttpHeaders, by: Judging): Promise<Identified | NodeAnswer> {
  const claim = readClaim(headers);
  if ("status" in claim) return claim;
  if (!isTokenFor(claim.token, AUDIENCE))
    return refuseNode("Unauthorized", `the token is not for the audience ${AUDIENCE}`);
  const pod = judgeReview(await review(claim.token, by), by.namespace);
  if ("status" in pod) return pod;
  return (await placePod(pod, claim, by)) ?? (await findNode(claim, by));
}

const TEXT = /^[\x21-\x7e]{1,16384}$/;

function readClaim(headers: IncomingHttpHeaders): Claim | NodeAnswer {
  const [nodeName, nodeUid, token] = [HEADERS.nodeName, HEADERS.nodeUid, HEADERS.token].map((name) => headers[name]);
  const isText = (value: unknown): value is string => typeof value === "string" && TEXT.test(value);
  if (isText(nodeName) && isText(nodeUid) && isText(token)) return { nodeName, nodeUid, token };
  return refuseNode(
    "BadRequest",
    "the headers BrupopNodeName, BrupopNodeUid and BrupopK8sAuthToken are needed, each once and in ASCII",
  );
}

async function review(token: string, { cluster, call }: Judging): Promise<unknown> {
  const body = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    metadata: {},
    spec: { token, audiences: [AUDIENCE] },
  };
  return (await cluster.create(tokenReviews, { body }, call)).status;
}

/** The refusal of a pod that does not run on the node of the claim, or whose token was made for another node. */
async function placePod(
  pod: TokenPod,
  claim: Claim,
  { cluster, namespace, call }: Judging,
): Promise<NodeAnswer | undefined> {
  const { nodeName = claim.nodeName, nodeUid = claim.nodeUid } = pod;
  const live = await cluster.get(pods, { namespace, name: pod.name }, call).catch(absent);
  if (live?.metadata?.uid !== pod.uid) return refuseNode("Forbidden", `pod ${pod.name} of the token is gone`);
  if (live.spec?.nodeName !== claim.nodeName)
    return refuseNode("Forbidden", `pod ${pod.name} does not run on node ${claim.nodeName}`);
  if (nodeName !== claim.nodeName)
    return refuseNode("Forbidden", `the token of pod ${pod.name} is for node ${nodeName}, not for ${claim.nodeName}`);
  if (nodeUid !== claim.nodeUid)
    return refuseNode(
      "Forbidden",
      `node ${claim.nodeName} does not have the UID of the header BrupopNodeUid, by the token of pod ${pod.name}`,
    );
  return undefined;
}

async function findNode({ nodeName, nodeUid }: Claim, { cluster, call }: Judging): Promise<Identified | NodeAnswer> {
  const node = await cluster.get(nodes, { name: nodeName }, call).catch(absent);
  return node?.metadata?.uid === nodeUid
    ? { node }
    : refuseNode("Forbidden", `there is no node ${nodeName} with the UID of the header BrupopNodeUid`);
}

/** The pod that a token is bound to, and its node if the API server reports it (Kubernetes 1.30 and later). */
interface TokenPod {
  readonly name: string;
  readonly uid: string;
  readonly nodeName?: string;
  readonly nodeUid?: string;
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
export function judgeReview(status: unknown, namespace: string): TokenPod | NodeAnswer {
  const reviewed = REVIEWED.safeParse(status);
  if (!reviewed.success || !reviewed.data.audiences.includes(AUDIENCE))
    return refuseNode("Unauthorized", "the token is not valid here");
  const { username, extra = {} } = reviewed.data.user;
  if (username !== `system:serviceaccount:${namespace}:${AGENT_ACCOUNT}`)
    return refuseNode("Forbidden", `${username} is not the ServiceAccount of the agents`);
  const only = (key: string): string | undefined => {
    const values = extra[`authentication.kubernetes.io/${key}`] ?? [];
    return values.length === 1 ? values[0] : undefined;
  };
  const [name, uid, nodeName, nodeUid] = [only("pod-name"), only("pod-uid"), only("node-name"), only("node-uid")];
  if (name === undefined || uid === undefined) return refuseNode("Forbidden", "the token is not bound to a pod");
  return { name, uid, ...(nodeName !== undefined && { nodeName }), ...(nodeUid !== undefined && { nodeUid }) };
}
