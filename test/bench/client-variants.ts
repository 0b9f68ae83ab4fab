/** The ways to list pods that the bench compares; each reads the whole list and keeps nothing but a count. As a program it runs one: `<name> <kubeconfig>`. */
import type { IncomingMessage } from "node:http";
import https from "node:https";
import { createGunzip } from "node:zlib";
import { connectCluster } from "../../infra/cluster.ts";
import { type Connection, loadConnection } from "../../infra/connection.ts";
import { pods } from "../../infra/resources.ts";

/** Loads the client and returns what is measured: the listing. */
type Variant = (kubeconfig: string) => Promise<() => Promise<number>>;

export interface Figures {
  readonly seen: number;
  readonly loadMs: number;
  readonly listMs: number;
  readonly peakMb: number;
}

const typed =
  (limit: number): Variant =>
  async (kubeconfig) => {
    const { CoreV1Api, KubeConfig } = await import("@kubernetes/client-node");
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    const api = config.makeApiClient(CoreV1Api);
    return async () => {
      let seen = 0;
      let token: string | undefined;
      do {
        const page = await api.listNamespacedPod({ namespace: "bench", limit, ...(token && { _continue: token }) });
        seen += page.items.length;
        token = page.metadata?._continue;
      } while (token);
      return seen;
    };
  };

const plain =
  (pageSize: number): Variant =>
  async (kubeconfig) => {
    const cluster = connectCluster(await loadConnection({ kubeconfig }), { timeoutMs: 60_000 });
    return async () => {
      let seen = 0;
      for await (const page of cluster.list(pods, { namespace: "bench", pageSize })) seen += page.items.length;
      return seen;
    };
  };

const withHeaders =
  (headers: Readonly<Record<string, string>>): Variant =>
  async (kubeconfig) => {
    const connection = await loadConnection({ kubeconfig });
    return async () => {
      let seen = 0;
      let token = "";
      do {
        const page = await fetchPage(connection, `/api/v1/namespaces/bench/pods?limit=500${token && `&continue=${token}`}`, headers);
        seen += page.items.length;
        token = page.metadata.continue;
      } while (token !== "");
      return seen;
    };
  };

interface PageBody {
  readonly items: readonly unknown[];
  readonly metadata: { readonly continue: string };
}

async function fetchPage(connection: Connection, path: string, headers: Readonly<Record<string, string>>): Promise<PageBody> {
  const options = await connection.authorize();
  const { hostname: host, port } = connection.server;
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    https.get({ ...options, host, port, path, headers: { ...options.headers, ...headers } }, resolve).on("error", reject);
  });
  const chunks: Buffer[] = [];
  for await (const chunk of answer.headers["content-encoding"] === "gzip" ? answer.pipe(createGunzip()) : answer) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString()) as PageBody;
}

const METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

export const VARIANTS: Readonly<Record<string, Variant>> = {
  "client-node, one list": typed(1_000_000),
  "client-node, pages of 500": typed(500),
  "plain JSON, one list": plain(1_000_000),
  "plain JSON, pages of 500": plain(500),
  "the same, gzip": withHeaders({ "accept-encoding": "gzip" }),
  "metadata only, pages of 500": withHeaders({ accept: METADATA }),
  "the same, metadata, gzip": withHeaders({ accept: METADATA, "accept-encoding": "gzip" }),
};

const [name = "", kubeconfig = ""] = process.argv.slice(2);
const variant = VARIANTS[name];
if (variant) {
  const list = await variant(kubeconfig);
  const loadMs = performance.now();
  const seen = await list();
  const figures: Figures = { seen, loadMs, listMs: performance.now() - loadMs, peakMb: process.resourceUsage().maxRSS / 1024 };
  process.stdout.write(JSON.stringify(figures), () => process.exit(0));
}
