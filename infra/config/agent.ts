/**
 * Reads the configuration of the agent: the original's variables, and ours for the log. With zod/mini, as all of zod
 * would take 3 MB of each node.
 */
import * as z from "zod/mini";
import { RolloutError } from "../errors.ts";
import type { LogFormat, LogLevel } from "../log.ts";

// https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
export const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** A whole number of at most five digits, at most `most`. */
const number = (most: number) =>
  z.pipe(z.string().check(z.regex(/^\d{1,5}$/)), z.transform(Number)).check(z.refine((value) => value <= most));

export const PORT = number(65_535);

export const AGENT_VARIABLES = {
  KUBERNETES_NAMESPACE: {
    schema: z.string().check(z.regex(LABEL)),
    meaning: "The namespace of this installation: where its Lease and its certificate are",
    allowed: "the name of a namespace",
  },
  APISERVER_SERVICE_PORT: {
    schema: PORT,
    meaning: "The port of the Service `brupop-apiserver`, which agents call",
    allowed: "a port",
    default: "443",
  },
  EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC: {
    schema: number(99_999),
    meaning: "Seconds from the exclusion of a node from load balancers to its drain; 0 leaves the exclusion out",
    allowed: "a whole number of seconds",
    default: "0",
  },
  MY_NODE_NAME: {
    schema: z.optional(z.string()),
    meaning: "The node that this process runs on: an agent speaks for it, and the controller updates it last",
    allowed: "the name of a node",
  },
  LOG_LEVEL: {
    schema: z.enum(["debug", "info", "warn", "error"]),
    meaning: "The least important entries that are logged",
    allowed: "debug, info, warn or error",
    default: "info",
  },
  LOG_FORMAT: {
    schema: z.enum(["json", "logfmt"]),
    meaning: "How a log entry is written: as a JSON object, or as key=value pairs",
    allowed: "json or logfmt",
    default: "json",
  },
} as const;

export type AgentConfiguration = ReturnType<typeof readAgentConfiguration>;

/** Throws `BadConfiguration`, which names the variable and the allowed values. */
export function readAgentConfiguration(env: Readonly<Record<string, string | undefined>>) {
  const read = (name: keyof typeof AGENT_VARIABLES): unknown => {
    const row: { schema: z.ZodMiniType; allowed: string; default?: string } = AGENT_VARIABLES[name];
    const parsed = z.safeParse(row.schema, env[name] || row.default);
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
    /** Milliseconds; 0 for no exclusion from load balancers. */
    exclusionMs: (read("EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC") as number) * 1000,
    log: { level: read("LOG_LEVEL") as LogLevel, format: read("LOG_FORMAT") as LogFormat },
  };
}
