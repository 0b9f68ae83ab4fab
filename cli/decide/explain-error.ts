/** Explains an error of the API server to the user of the CLI, and suggests what to do. Pure. */
import { hasCode, messageOf, RolloutError, type ErrorCode } from "../../infra/errors.ts";

interface ErrorText {
  readonly message: string;
  readonly hint?: string;
}

const CLUSTER_INFO = "kubectl cluster-info shows whether the API server is there";

/** Undefined if the message says what to do, or if no command of ours ends with the error. */
const HINTS: Readonly<Record<ErrorCode, string | undefined>> = {
  BadConfiguration: "set KUBECONFIG, or use --kubeconfig and --context",
  Unauthorized: "the API server does not accept these credentials; see who you are: kubectl auth whoami",
  Forbidden: undefined,
  NotFound: `it was deleted meanwhile, or the server that answered is not an API server: run the command again; ${CLUSTER_INFO}`,
  AlreadyExists: undefined,
  Conflict: "someone else changed it meanwhile: run the command again",
  Expired: "the cluster changes faster than it is read: run the command again",
  Invalid: undefined,
  Throttled: "the API server or a webhook refuses it for now: run the command again later",
  WebhookFailed:
    "the webhook in the message does not answer and fails closed: check that its pods run; zonewise doctor",
  Timeout: "the API server did not answer in time: a longer --request-timeout may help",
  Cancelled: undefined,
  Unreachable: CLUSTER_INFO,
  ServerError: `the API server failed, or another server answered: ${CLUSTER_INFO}`,
  LeaseLost: undefined,
};

/** No request was sent: the kubeconfig's user has a credential plugin, or files, that give no credentials. */
const NO_CREDENTIALS = "the kubeconfig has no usable credentials; no request was sent: kubectl auth whoami";

/** `… cannot list resource "rolloutgroups" in API group "zonewise.dev" in the namespace "cache"` */
const RIGHT =
  /User "(?<user>[^"]*)" cannot (?<verb>\w+) resource "(?<resource>[^"]*)" in API group "(?<group>[^"]*)"(?: in the namespace "(?<namespace>[^"]*)")?/;

export function explainError(error: unknown): ErrorText {
  const message = messageOf(error).trim();
  const right = hasCode(error, "Forbidden") ? RIGHT.exec(message)?.groups : undefined;
  if (right) return explainRight(right);
  const hint = hintOf(error);
  return {
    message: hasCode(error, "Unreachable") ? describeUnreachable(message) : message,
    ...(hint !== undefined && { hint }),
  };
}

const CAUSES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the name cannot be looked up",
  ETIMEDOUT: "timed out",
};

/** `list pods default: connect ECONNREFUSED 127.0.0.1:6443` tells of a call; what counts is the server. */
function describeUnreachable(message: string): string {
  const [, code = "", host = ""] = /\b(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT) ?(\S*)/.exec(message) ?? [];
  const cause = CAUSES[code];
  return `cannot reach the API server${host && ` at ${host}`}${cause === undefined ? `: ${message}` : ` (${cause})`}`;
}

function hintOf(error: unknown): string | undefined {
  if (!(error instanceof RolloutError)) return undefined;
  return error.code === "Unauthorized" && error.status === undefined ? NO_CREDENTIALS : HINTS[error.code];
}

const READS = new Set(["get", "list", "watch"]);

function explainRight({
  user = "",
  verb = "",
  resource = "",
  group,
  namespace,
}: Readonly<Record<string, string | undefined>>): ErrorText {
  const what = group ? `${resource}.${group}` : resource;
  const where = namespace === undefined ? "in the whole cluster" : `in namespace ${namespace}`;
  const role = READS.has(verb) ? "zonewise-viewer" : "zonewise-operator";
  return {
    message: `${user} may not ${verb} ${what} ${where}`,
    hint: `the ClusterRole ${role} allows it: infra/manifests/cli`,
  };
}
