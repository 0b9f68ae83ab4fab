/** Reads the configuration of the agent: the original's variables, and ours for the log. */
import { RolloutError } from "../errors.ts";
import type { LogFormat, LogLevel } from "../log.ts";
import { VARIABLE_ROWS, type VariableName } from "./variables.ts";

export interface AgentConfiguration {
  readonly nodeName: string;
  readonly namespace: string;
  readonly apiPort: number;
  /** Milliseconds; 0 for no exclusion from load balancers. */
  readonly exclusionMs: number;
  readonly log: { readonly level: LogLevel; readonly format: LogFormat };
}

const ROWS = new Map(VARIABLE_ROWS);

/** Throws `BadConfiguration`, which names the variable and the allowed values. */
export function readAgentConfiguration(env: Readonly<Record<string, string | undefined>>): AgentConfiguration {
  const read = (name: VariableName): unknown => {
    const row = ROWS.get(name);
    const parsed = row?.schema.safeParse(env[name] || row.default);
    if (parsed?.data !== undefined) return parsed.data;
    throw new RolloutError("BadConfiguration", `bad configuration: ${name} is ${env[name] ?? "not set"}, allowed is ${row?.allowed}`);
  };
  return {
    nodeName: read("MY_NODE_NAME") as string,
    namespace: read("KUBERNETES_NAMESPACE") as string,
    apiPort: read("APISERVER_SERVICE_PORT") as number,
    exclusionMs: (read("EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC") as number) * 1000,
    log: { level: read("LOG_LEVEL") as LogLevel, format: read("LOG_FORMAT") as LogFormat },
  };
}
