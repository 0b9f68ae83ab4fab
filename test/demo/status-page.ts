/** The status page beside the embedded cluster, on a free port of this machine. */
import { runPlain } from "../../functions/http/server.ts";
import { composeStatusPage } from "../../functions/status/compose.ts";
import { systemClock } from "../../infra/clock.ts";

interface DemoStatusPage {
  readonly url: string;
  /** Resolves once it has stopped. */
  readonly serving: Promise<void>;
}

/** Serves until `stop` fires. */
export async function startStatusPage(
  kubeconfig: string,
  namespace: string,
  stop: AbortSignal,
): Promise<DemoStatusPage> {
  const server = { SERVER_ADDRESS: "127.0.0.1", SERVER_PORT: "0", LOG_LEVEL: "error" };
  const env = {
    KUBECONFIG: kubeconfig,
    KUBERNETES_NAMESPACE: namespace,
    NAMESPACES: "*",
    CLUSTER_NAME: "demo",
    ...server,
  };
  const page = await composeStatusPage(env, systemClock);
  const listening = Promise.withResolvers<string>();
  const serving = runPlain(page, stop, listening.resolve);
  serving.catch(listening.reject);
  return { url: await listening.promise, serving };
}
