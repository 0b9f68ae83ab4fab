/** Who may speak for a node, as a real API server reviews tokens. */
import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { decodeJwt, decodeProtectedHeader, SignJWT } from "jose";
import type { Node } from "../../../infra/kubernetes/resources.ts";
import { type OpenPlace, openPlace } from "../stage/place.ts";
import { until } from "../stage/until.ts";
import { AGENT, type NodeClusterStage, openNodeStage } from "./node-stage.ts";

interface AgentPod {
  readonly name: string;
  readonly uid: string;
}

let place: OpenPlace;
let stage: NodeClusterStage;
let node: Node;
let other: Node;
let pod: AgentPod;
let otherPod: AgentPod;

async function createPod(
  where: Node,
  namespace = stage.namespace,
  name = `agent-${where.metadata?.name}`,
): Promise<AgentPod> {
  const spec = { nodeName: where.metadata?.name, serviceAccountName: AGENT, containers: [{ name: "c", image: "x" }] };
  const created = await stage.admin.call<{ metadata: AgentPod }>("POST", `/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name },
    spec,
  });
  return { name, uid: created.metadata.uid };
}

const statusOf = async (token: string, of = node): Promise<number> =>
  (await stage.callAs(of, async () => token)("create")).status;

before(async () => {
  place = await openPlace();
  stage = await openNodeStage(place, 2);
  [node, other] = stage.nodes as [Node, Node];
  pod = await createPod(node);
  otherPod = await createPod(other);
  const token = await stage.requestToken({ pod });
  // An API server knows new bindings after a moment.
  await until("the node API has its rights", async () => (await statusOf(token)) === 200);
});
after(() => place.close());

describe("the node API, called with a token that a real API server reviews,", () => {
  it("refuses a token for another audience", async () =>
    assert.equal(await statusOf(await stage.requestToken({ pod, audience: "https://kubernetes.default.svc" })), 401));

  it("refuses a forged token", async () => {
    const [head, body, signature = ""] = (await stage.requestToken({ pod })).split(".");
    assert.equal(await statusOf(`${head}.${body}.${signature.slice(0, -8)}AAAAAAAA`), 401);
  });

  it("refuses a token that is bound to no pod, and another ServiceAccount's", async () => {
    assert.equal(await statusOf(await stage.requestToken()), 403);
    assert.equal(await statusOf(await stage.requestToken({ account: "default" })), 403);
  });

  it("refuses the token of a pod that is gone", async () => {
    const gone = await createPod(node, stage.namespace, "gone");
    const token = await stage.requestToken({ pod: gone });
    assert.equal(await statusOf(token), 200);
    const path = `/api/v1/namespaces/${stage.namespace}/pods/gone`;
    await stage.admin.call("DELETE", path, { gracePeriodSeconds: 0 });
    await until(
      "the pod is gone",
      async () => (await stage.admin.call("GET", path).catch((error: Error) => error.cause)) === 404,
    );
    // The API server remembers reviews for some seconds; the pod itself is read each time.
    assert.ok([401, 403].includes(await statusOf(token)));
  });

  // Only the plane of the tests shows its key.
  const keyFile = join(dirname(process.env["KUBECONFIG"] ?? ""), "sa.key");
  if (existsSync(keyFile))
    it("refuses a token that has expired, though its signature is genuine", async () => {
      const genuine = await stage.requestToken({ pod });
      const { kid } = decodeProtectedHeader(genuine);
      const key = createPrivateKey(readFileSync(keyFile));
      const sign = (iat: number, exp: number): Promise<string> =>
        new SignJWT({ ...decodeJwt(genuine), iat, nbf: iat, exp })
          .setProtectedHeader({ alg: "RS256", ...(kid && { kid }) })
          .sign(key);
      const now = Math.floor(Date.now() / 1000);
      assert.equal(await statusOf(await sign(now - 10, now + 3600)), 200);
      assert.equal(await statusOf(await sign(now - 7200, now - 60)), 401);
    });
});

it("a Node that is deleted and registered again is served, with its agent's pod that has stayed", async () => {
  const { admin, callAs, requestToken } = stage;
  const { name, labels } = other.metadata ?? {};
  const call = callAs(other, () => requestToken({ pod: otherPod }));
  assert.equal((await call("create")).status, 200);
  await admin.call("DELETE", `/api/v1/nodes/${name}`);
  const again = { apiVersion: "v1", kind: "Node", metadata: { name, labels } };
  const registered = await admin.call<Node>("POST", "/api/v1/nodes", again);
  assert.notEqual(registered.metadata?.uid, other.metadata?.uid);
  await until("the new Node has its shadow", async () => (await call("create")).status === 200);
});
