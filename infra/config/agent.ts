/** Reads the configuration of the agent: the original's variables, and ours for the log. */
import { safeParse } from "zod/mini";
import { RolloutError } from "../errors.ts";
import type { LogFormat, LogLevel } from "../log.ts";
import { AGENT_VARIABLES } from "./agent-variables.ts";
import type { Variable } from "./variable-schemas.ts";

export interface AgentConfiguration {
  readonly nodeName: string;
  readonly namespace: string;
  readonly apiPort: number;
  /** Milliseconds; 0 for no exclusion from load balancers. */
  readonly exclusionMs: number;
  readonly log: { readonly level: LogLevel; readonly format: LogFormat };
}

/** Throws `BadConfiguration`, which names the variable and the allowed values. */
export function readAgentConfiguration(env: Readonly<Record<string, string | undefined>>): AgentConfiguration {
  const read = (name: keyof typeof AGENT_VARIABLES): unknown => {
    const row: Variable = AGENT_VARIABLES[name];
    const parsed = safeParse(row.schema, env[name] || row.default);
    if (parsed.data !== undefined) return parsed.data;
    throw new RolloutError(
      "BadConfiguration",
      `bad configuration: ${name} is ${env[name] ?? "not set"}, allowed is ${row.allowed}`,
    );
  };
  return {
    nodeName: read("MY_NODE_NAME") as string,
    namespace: read("KUBERNETES_NAMESPACE") as string,
    apiPort: read("APISERVER_SERVICE_PORT") as number,
    exclusionMs: (read("EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC") as number) * 1000,
    log: { level: read("LOG_LEVEL") as LogLevel, format: read("LOG_FORMAT") as LogFormat },
  };
}
