#!/usr/bin/env node
/** Entry of the agent, one a node: configuration -> rounds until the host reboots -> exit code (0 also after a reboot was asked for, 2 bad configuration). */
import { readFile } from "node:fs/promises";
import { systemClock } from "../../infra/clock.ts";
import { readAgentConfiguration } from "../../infra/config/agent.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { loadOwnAccount } from "../../infra/kubernetes/own-account.ts";
import { nodes } from "../../infra/kubernetes/resources.ts";
import { createLog, stdout } from "../../infra/log.ts";
import { runEntry } from "../../infra/process.ts";
import { createHostApi } from "./host-api.ts";
import { runAgent } from "./loop.ts";
import { createNodeApi } from "./node-api.ts";

const HOST_SOCKET = "/run/api.sock";
const BOOT_ID = "/proc/sys/kernel/random/boot_id";
const TOKEN = "/var/run/secrets/tokens/bottlerocket-agent-service-account-token";
const CA = "/etc/brupop-tls-keys/ca.crt";

await runEntry("the agent failed", async (stop) => {
  const { nodeName, namespace, apiPort, exclusionMs, log: logging } = readAgentConfiguration(process.env);
  const clock = systemClock;
  const log = createLog({ ...logging, write: stdout.write, now: () => new Date(clock.now()) });
  const cluster = connectCluster(await loadOwnAccount(process.env), { timeoutMs: 10_000 });
  const node = await cluster.get(nodes, { name: nodeName });
  const read = (path: string) => () => readFile(path, "utf8");
  const callApi = createNodeApi({
    url: new URL(`https://brupop-apiserver.${namespace}.svc.cluster.local:${apiPort}`),
    node: { name: nodeName, uid: node.metadata?.uid ?? "" },
    readToken: read(TOKEN),
    readCa: read(CA),
  });
  log.info("the agent runs", { node: nodeName });
  const tools = {
    cluster,
    clock,
    log,
    stop,
    callApi,
    namespace,
    nodeName,
    exclusionMs,
    host: createHostApi(HOST_SOCKET),
    readBootId: async () => (await read(BOOT_ID)()).trim(),
    pollMs: 5000,
    actionMs: 15 * 60_000,
    refreshMs: 120_000,
    rebootMs: 180_000,
    memory: {},
  };
  await runAgent(tools, { pauseMs: 5000, idleMs: 30_000 });
  return 0;
});
