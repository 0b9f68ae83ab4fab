/** The node API on the cluster of KUBECONFIG, under the rights of its manifests, with agents' pods and their tokens. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { certify } from "../../certify.ts";
import type { Node } from "../../../infra/kubernetes/resources.ts";
import { type CallNodeApi, createNodeApi } from "../../../reconciler/nodes/agent/call-node-api.ts";
import { freePort } from "../../loopback.ts";
import { RESERVED } from "../../emulator/controllers/schedule.ts";
import { buildKubeconfig } from "../stage/access.ts";
import { type Admin, remove } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";
import { until } from "../stage/until.ts";
import { serverVariables, startEntry, type TestProcess } from "../stage/process.ts";
import { createManifest, deleteManifest, type Manifest } from "../stage/manifests.ts";
import type { Place } from "../stage/place.ts";
import { make } from "../../builders/objects.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;
const FOLDER = "infra/manifests/node-updates";
const HOME = "brupop-bottlerocket-aws";
/** On the nodes of a test: its namespace. */
export const TEST_LABEL = "zw-test";
export const AGENT = "brupop-agent-service-account";

interface TokenTraits {
  readonly account?: string;
  readonly audience?: string;
  readonly namespace?: string;
  /** The pod that it is bound to. */
  readonly pod?: { readonly name: string; readonly uid: string };
}

export interface NodeClusterStage extends Place {
  readonly nodes: readonly Node[];
  readonly requestToken: (traits?: TokenTraits) => Promise<string>;
  /** Calls the API for a node with what `readToken` gives. */
  readonly callAs: (node: Node, readToken: () => Promise<string>) => CallNodeApi;
  /** Kills the API (SIGKILL), as if all its replicas were killed, and starts it again. */
  readonly restartApi: () => Promise<void>;
}

async function readManifests(file: string, namespace: string): Promise<Manifest[]> {
  const written = await readFile(join(ROOT, FOLDER, file), "utf8");
  const text = written.replaceAll(HOME, namespace).replaceAll(/namespace: zonewise$/gm, `namespace: ${namespace}`);
  return parseAllDocuments(text).map((document) => inNamespace(document.toJS() as Manifest, namespace));
}

/** Rights of the cluster are named for the test. */
function inNamespace(
  manifest: Manifest & { readonly roleRef?: { readonly name: string } },
  namespace: string,
): Manifest {
  if (!manifest.kind.startsWith("ClusterRole")) return manifest;
  const rename = (name: string): string => `${name}-${namespace}`;
  const { roleRef, metadata } = manifest;
  return {
    ...manifest,
    metadata: { ...metadata, name: rename(metadata.name) },
    ...(roleRef && { roleRef: { ...roleRef, name: rename(roleRef.name) } }),
  };
}

/** Serves the node API in the place until it is closed, beside so many simulated nodes, in three zones in turn. */
export async function openNodeStage(place: Place, count: number): Promise<NodeClusterStage> {
  const { admin, namespace, folder, defer } = place;
  await define(admin, "bottlerocketshadows", "nodeupdatepolicies");
  // What an earlier test has left.
  await remove(admin, "/apis/zonewise.dev/v1/nodeupdatepolicies/default");
  const files = ["rbac-agent.yaml", "rbac-api.yaml", "rbac-reconciler.yaml", "agent.yaml"];
  const manifests = (await Promise.all(files.map((file) => readManifests(file, namespace)))).flat();
  for (const manifest of manifests) {
    if (manifest.kind.startsWith("ClusterRole")) defer(() => deleteManifest(admin, manifest));
    await createManifest(admin, manifest);
  }
  const nodes = await createNodes(admin, namespace, count);
  for (const { metadata } of nodes) defer(() => remove(admin, `/api/v1/nodes/${metadata?.name}`));
  const { caPem, certPem, keyPem } = await certify("localhost");
  const own = join(folder, "node-api");
  await mkdir(own);
  await writeFile(join(own, "tls.crt"), certPem);
  await writeFile(join(own, "tls.key"), keyPem);
  const kubeconfig = await buildKubeconfig(admin, namespace, "brupop-apiserver-service-account");
  await writeFile(join(own, "kubeconfig"), JSON.stringify(kubeconfig), { mode: 0o600 });
  const [tlsPort, port] = [await freePort(), await freePort()];
  const env = serverVariables({ namespace, folder: own, tlsPort, port });
  const startApi = async (): Promise<TestProcess> => {
    const started = startEntry("functions/nodes/main.ts", { PATH: process.env["PATH"] ?? "", ...env });
    await until("the node API is ready", async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok);
    return started;
  };
  let api = await startApi();
  defer(() => api.end());
  return {
    ...place,
    nodes,
    async requestToken({ account = AGENT, audience = "brupop-apiserver", namespace: of = namespace, pod } = {}) {
      const boundObjectRef = pod && { apiVersion: "v1", kind: "Pod", ...pod };
      const spec = { audiences: [audience], expirationSeconds: 3600, ...(boundObjectRef && { boundObjectRef }) };
      const path = `/api/v1/namespaces/${of}/serviceaccounts/${account}/token`;
      return (await admin.call<{ status: { token: string } }>("POST", path, { spec })).status.token;
    },
    callAs: ({ metadata }, readToken) =>
      createNodeApi({
        url: new URL(`https://localhost:${tlsPort}`),
        node: { name: metadata?.name ?? "", uid: metadata?.uid ?? "" },
        readUid: async () => (await admin.call<Node>("GET", `/api/v1/nodes/${metadata?.name}`)).metadata?.uid ?? "",
        readToken,
        readCa: async () => caPem,
      }),
    async restartApi() {
      await api.kill();
      api = await startApi();
    },
  };
}

/** With the original's label, one zone after the other; they are of the test by a label. */
async function createNodes({ call }: Admin, namespace: string, count: number): Promise<Node[]> {
  const created: Node[] = [];
  for (let n = 0; n < count; n++) {
    const labels = {
      "kubernetes.io/os": "linux",
      "kubernetes.io/arch": "amd64",
      "topology.kubernetes.io/zone": `${namespace}-${"abc"[n % 3]}`,
      [TEST_LABEL]: namespace,
      [RESERVED]: "true",
      "bottlerocket.aws/updater-interface-version": "2.0.0",
    };
    created.push(await call<Node>("POST", "/api/v1/nodes", make("Node", `${namespace}-${n}`, { labels })));
  }
  return created;
}
