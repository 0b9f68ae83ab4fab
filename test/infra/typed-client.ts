/** Uses the parts of client-node's configuration that the build leaves out. */
import { KubeConfig } from "@kubernetes/client-node/dist/config.js";

function configure(): KubeConfig {
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: "c", server: "https://api.test", skipTLSVerify: true }, { name: "u" });
  return config;
}

class Api {
  readonly of = "nothing";
}

export function openTypedClient(): void {
  configure().makeApiClient(Api);
}

export function openDispatcher(): void {
  const config = configure();
  config["createDispatcher"](config.getCurrentCluster(), { rejectUnauthorized: false });
}
