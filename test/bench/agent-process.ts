/** The agent as it ships, but for the places that only a pod has. */
import { runEntry } from "../../infra/process.ts";
import { startAgent } from "../../reconciler/nodes/agent/start.ts";

await runEntry("the agent failed", async (stop) => {
  const folder = process.env["BENCH_FOLDER"] ?? "";
  const places = {
    hostSocket: process.env["BENCH_SOCKET"] ?? "",
    bootId: `${folder}/boot_id`,
    token: `${folder}/node-api-token`,
    ca: `${folder}/node-api-ca.crt`,
    account: folder,
    nodeApi: ({ apiPort }: { readonly apiPort: number }) => new URL(`https://localhost:${apiPort}`),
  };
  await startAgent(process.env, places, { stop });
  return 0;
});
