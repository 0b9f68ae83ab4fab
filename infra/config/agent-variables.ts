/**
 * The environment variables that an agent reads, one row each; with zod/mini, as all of zod would take 3 MB of each
 * node.
 */
import * as z from "zod/mini";

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
