/** One measured list by our own port: `<kubeconfig> <page size> <protobuf or json>`, 0 for all in one. */
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../infra/kubernetes/connection.ts";
import { pods } from "../../infra/kubernetes/resources.ts";
import { reportList } from "./client-figures.ts";

const [kubeconfig = "", pageSize, form] = process.argv.slice(2);
const { createListDecoder: _, ...podsInJson } = pods;
const cluster = connectCluster(await loadConnection({ kubeconfig }), { timeoutMs: 60_000 });

await reportList(async () => {
  let seen = 0;
  const query = { namespace: "bench", pageSize: Number(pageSize) || Infinity };
  for await (const page of cluster.list(form === "json" ? podsInJson : pods, query)) seen += page.items.length;
  return seen;
});
