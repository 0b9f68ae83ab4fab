/** One measured list by client-node's typed client: `<kubeconfig> <page size>`, 0 for all in one. */
import { CoreV1Api, KubeConfig } from "@kubernetes/client-node";
import { reportList } from "./client-figures.ts";

const [kubeconfig = "", pageSize] = process.argv.slice(2);
const limit = Number(pageSize);
const config = new KubeConfig();
config.loadFromFile(kubeconfig);
const api = config.makeApiClient(CoreV1Api);

await reportList(async () => {
  let seen = 0;
  let token: string | undefined;
  do {
    const page = await api.listNamespacedPod({
      namespace: "bench",
      ...(limit && { limit }),
      ...(token && { _continue: token }),
    });
    seen += page.items.length;
    token = page.metadata?._continue;
  } while (token);
  return seen;
});
