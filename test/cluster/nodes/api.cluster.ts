/** Who may speak for a node, as a real API server reviews tokens; the node API has the rights of its manifests. */
import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { decodeJwt, decodeProtectedHeader, SignJWT } from "jose";
import { parseAllDocuments } from "yaml";
import type { Node } from "../../../infra/kubernetes/resources.ts";
import { createNodeApi } from "../../../reconciler/nodes/agent/call-node-api.ts";
import { make } from "../../builders/objects.ts";
import { certify } from "../../certify.ts";
import { RESERVED } from "../../emulator/controllers/schedule.ts";
import { freePort } from "../../loopback.ts";
import { buildKubeconfig } from "../stage/access.ts";
import { remove } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";
import { createManifest, deleteManifest, type Manifest } from "../stage/manifests.ts";
import { openPlace } from "../stage/place.ts";
import { serverVariables, startEntry } from "../stage/process.ts";
import { until } from "../stage/until.ts";

const FOLDER = new URL("../../../infra/manifests/node-updates/", import.meta.url);
const AGENT = "brupop-agent-service-account";

const place = await openPlace();
after(place.close);
const { admin, namespace, folder, defer } = place;

interface AgentPod {
  readonly name: string;
  readonly uid: string;
}

interface TokenTraits {
  readonly account?: string;
  readonly audience?: string;
  /** The pod that it is bound to. */
  readonly pod?: AgentPod;
}

let api: { readonly url: URL; readonly ca: string };
let node: Node;
let other: Node;
let pod: AgentPod;
let otherPod: AgentPod;

/** The rights of the agents and of the API, in this namespace; rights of the cluster are named for the test. */
async function applyRights(file: string): Promise<void> {
  const text = readFileSync(new URL(file, FOLDER), "utf8").replaceAll("brupop-bottlerocket-aws", namespace);
  for (const document of parseAllDocuments(text)) {
    const manifest = document.toJS() as Manifest & { readonly roleRef?: { readonly name: string } };
    if (!manifest.kind.startsWith("ClusterRole")) {
      await createManifest(admin, manifest);
      continue;
    }
    const { roleRef, metadata } = manifest;
    const own = {
      ...manifest,
      metadata: { ...metadata, name: `${metadata.name}-${namespace}` },
      ...(roleRef && { roleRef: { ...roleRef, name: `${roleRef.name}-${namespace}` } }),
    };
    defer(() => deleteManifest(admin, own));
    await createManifest(admin, own);
  }
}

/** Serves the node API until the end of the file. */
async function serveApi(): Promise<typeof api> {
  const { caPem, certPem, keyPem } = await certify("localhost");
  const kubeconfig = await buildKubeconfig(admin, namespace, "brupop-apiserver-service-account");
  await writeFile(join(folder, "tls.crt"), certPem);
  await writeFile(join(folder, "tls.key"), keyPem);
  await writeFile(join(folder, "kubeconfig"), JSON.stringify(kubeconfig), { mode: 0o600 });
  const [tlsPort, port] = [await freePort(), await freePort()];
  const variables = serverVariables({ namespace, folder, tlsPort, port });
  const started = startEntry("functions/nodes/main.ts", { PATH: process.env["PATH"] ?? "", ...variables });
  defer(() => started.end());
  await until("the node API is ready", async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok);
  return { url: new URL(`https://localhost:${tlsPort}`), ca: caPem };
}

/** With the original's label. */
async function createNode(name: string): Promise<Node> {
  const labels = {
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    [RESERVED]: "true",
    "bottlerocket.aws/updater-interface-version": "2.0.0",
  };
  defer(() => remove(admin, `/api/v1/nodes/${name}`));
  return await admin.call<Node>("POST", "/api/v1/nodes", make("Node", name, { labels }));
}

async function requestToken({
  account = AGENT,
  audience = "brupop-apiserver",
  pod: of,
}: TokenTraits = {}): Promise<string> {
  const boundObjectRef = of && { apiVersion: "v1", kind: "Pod", ...of };
  const spec = { audiences: [audience], expirationSeconds: 3600, ...(boundObjectRef && { boundObjectRef }) };
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  return (await admin.call<{ status: { token: string } }>("POST", path, { spec })).status.token;
}

/** Calls the API for a node with what `readToken` gives. */
const callAs = ({ metadata }: Node, readToken: () => Promise<string>) =>
  createNodeApi({
    url: api.url,
    node: { name: metadata?.name ?? "", uid: metadata?.uid ?? "" },
    readUid: async () => (await admin.call<Node>("GET", `/api/v1/nodes/${metadata?.name}`)).metadata?.uid ?? "",
    readToken,
    readCa: async () => api.ca,
  });

async function createPod(where: Node, name = `agent-${where.metadata?.name}`): Promise<AgentPod> {
  const spec = { nodeName: where.metadata?.name, serviceAccountName: AGENT, containers: [{ name: "c", image: "x" }] };
  const created = await admin.call<{ metadata: AgentPod }>("POST", `/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name },
    spec,
  });
  return { name, uid: created.metadata.uid };
}

const statusOf = async (token: string, of = node): Promise<number> =>
  (await callAs(of, async () => token)("create")).status;

before(async () => {
  await define(admin, "bottlerocketshadows");
  for (const file of ["rbac-agent.yaml", "rbac-api.yaml"]) await applyRights(file);
  [node, other] = [await createNode(`${namespace}-0`), await createNode(`${namespace}-1`)];
  api = await serveApi();
  pod = await createPod(node);
  otherPod = await createPod(other);
  const token = await requestToken({ pod });
  // An API server knows new bindings after a moment.
  await until("the node API has its rights", async () => (await statusOf(token)) === 200);
});

describe("the node API, called with a token that a real API server reviews,", () => {
  it("refuses a token for another audience", async () =>
    assert.equal(await statusOf(await requestToken({ pod, audience: "https://kubernetes.default.svc" })), 401));

  it("refuses a forged token", async () => {
    const [head, body, signature = ""] = (await requestToken({ pod })).split(".");
    assert.equal(await statusOf(`${head}.${body}.${signature.slice(0, -8)}AAAAAAAA`), 401);
  });

  it("refuses a token that is bound to no pod, and another ServiceAccount's", async () => {
    assert.equal(await statusOf(await requestToken()), 403);
    assert.equal(await statusOf(await requestToken({ account: "default" })), 403);
  });

  it("refuses the token of a pod that is gone", async () => {
    const gone = await createPod(node, "gone");
    const token = await requestToken({ pod: gone });
    assert.equal(await statusOf(token), 200);
    const path = `/api/v1/namespaces/${namespace}/pods/gone`;
    await admin.call("DELETE", path, { gracePeriodSeconds: 0 });
    await until(
      "the pod is gone",
      async () => (await admin.call("GET", path).catch((error: Error) => error.cause)) === 404,
    );
    // The API server remembers reviews for some seconds; the pod itself is read each time.
    assert.ok([401, 403].includes(await statusOf(token)));
  });

  // Only the plane of the tests shows its key.
  const keyFile = join(dirname(process.env["KUBECONFIG"] ?? ""), "sa.key");
  if (existsSync(keyFile))
    it("refuses a token that has expired, though its signature is genuine", async () => {
      const genuine = await requestToken({ pod });
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
  const { name, labels } = other.metadata ?? {};
  const call = callAs(other, () => requestToken({ pod: otherPod }));
  assert.equal((await call("create")).status, 200);
  await admin.call("DELETE", `/api/v1/nodes/${name}`);
  const again = { apiVersion: "v1", kind: "Node", metadata: { name, labels } };
  const registered = await admin.call<Node>("POST", "/api/v1/nodes", again);
  assert.notEqual(registered.metadata?.uid, other.metadata?.uid);
  await until("the new Node has its shadow", async () => (await call("create")).status === 200);
});
