/** The environment variables of node updates, one row each. */
import * as z from "zod";
import { AGENT_VARIABLES, LABEL } from "./agent-variables.ts";
import { flag, text } from "./variable-schemas.ts";

export const NODE_VARIABLES = {
  NODE_UPDATES: {
    ...flag,
    meaning: "Whether this installation updates the operating systems of nodes; one installation a cluster does",
    default: "false",
  },
  NODE_UPDATES_NAMESPACE: {
    schema: z.string().regex(LABEL),
    meaning: "The namespace of the BottlerocketShadows and of the agents",
    allowed: "the name of a namespace",
    default: "brupop-bottlerocket-aws",
  },
  MAX_CONCURRENT_UPDATE: {
    schema: z.string().regex(/^(?:\d{1,6}|(?:100|[1-9]?\d)%|unlimited)$/i),
    meaning: "`maxConcurrent` of the NodeUpdatePolicy `default`, which is made if there is no policy",
    allowed: "a whole number, a percentage or unlimited",
    default: "1",
  },
  SCHEDULER_CRON_EXPRESSION: {
    schema: text,
    meaning: "The window of that policy, in UTC; always open when not set",
    allowed: "a cron expression of six or seven fields",
  },
  APISERVER_SERVICE_PORT: AGENT_VARIABLES.APISERVER_SERVICE_PORT,
  EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC: AGENT_VARIABLES.EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC,
  MY_NODE_NAME: AGENT_VARIABLES.MY_NODE_NAME,
} as const;

export interface NodeUpdateConfiguration {
  readonly enabled: boolean;
  readonly namespace: string;
  /** `maxConcurrent` of the policy that is created if there is none; `cron` is its window. */
  readonly maxConcurrent: string;
  readonly cron: string | undefined;
  readonly ownNode: string | undefined;
}
