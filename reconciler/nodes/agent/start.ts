/** Composes the agent from the environment and the files of its pod, and runs it until its host reboots. */
import { readFile } from "node:fs/promises";
import { systemClock } from "../../../infra/clock.ts";
import { type AgentConfiguration, readAgentConfiguration } from "../../../infra/config/agent.ts";
import { connectCluster } from "../../../infra/kubernetes/connect-cluster.ts";
import { loadOwnAccount } from "../../../infra/kubernetes/own-account.ts";
import { nodes } from "../../../infra/kubernetes/resources.ts";
import { createLog, stdout } from "../../../infra/log.ts";
import type { Machine } from "../../../infra/machine.ts";
import { createHostApi } from "./host-api.ts";
import { runAgent } from "./loop.ts";
import { createNodeApi } from "./call-node-api.ts";

/** The paths of the files that an agent's pod mounts, and the URL of the node API. */
interface AgentPlaces {
  /** The socket of the host's API. */
  readonly hostSocket: string;
  readonly bootId: string;
  /** The token for the node API, and the CA of its certificate. */
  readonly token: string;
  readonly ca: string;
  /** The folder of the ServiceAccount's credentials. */
  readonly account: string;
  readonly nodeApi: (configuration: AgentConfiguration) => URL;
}

interface AgentRun {
  readonly stop: AbortSignal;
  readonly machine?: Machine;
}

/** Resolves once the host reboots or `stop` fires. Rejects with `BadConfiguration`, or if the Node cannot be read. */
export async function startAgent(
  env: Readonly<Record<string, string | undefined>>,
  { hostSocket, bootId, token, ca, account, nodeApi }: AgentPlaces,
  { stop, machine = systemClock }: AgentRun,
): Promise<void> {
  const configuration = readAgentConfiguration(env);
  const { nodeName, namespace, exclusionMs, log: logging } = configuration;
  const { open, write = stdout.write, read = readText } = machine;
  const connect = machine.connect ?? (async () => loadOwnAccount(env, account));
  const log = createLog({ ...logging, write, now: () => new Date(machine.now()) });
  const cluster = connectCluster(await connect({}), { timeoutMs: 10_000, clock: machine });
  const readUid = async (): Promise<string> => (await cluster.get(nodes, { name: nodeName })).metadata?.uid ?? "";
  const callApi = createNodeApi({
    url: nodeApi(configuration),
    node: { name: nodeName, uid: await readUid() },
    readUid,
    readToken: () => read(token),
    readCa: () => read(ca),
    open,
    clock: machine,
  });
  log.info("the agent runs", { node: nodeName });
  const tools = {
    cluster,
    clock: machine,
    log,
    stop,
    callApi,
    namespace,
    nodeName,
    exclusionMs,
    host: createHostApi(hostSocket, { open, clock: machine }),
    readBootId: async () => (await read(bootId)).trim(),
    pollMs: 5000,
    actionMs: 15 * 60_000,
    refreshMs: 120_000,
    rebootMs: 180_000,
    memory: {},
  };
  await runAgent(tools, { pauseMs: 5000, idleMs: 30_000 });
}

const readText = (path: string): Promise<string> => readFile(path, "utf8");
