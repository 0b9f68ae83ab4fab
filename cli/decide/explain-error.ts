/** Explains an error of the API server to the user of the CLI, and suggests what to do. Pure. */
import { hasCode, messageOf, RolloutError, type ErrorCode } from "../../infra/errors.ts";

interface ErrorText {
  readonly message: string;
  readonly hint?: string;
}

const CLUSTER_INFO = "kubectl cluster-info says if the API server is there";

/** Undefined if the message says what to do, or if no command of ours ends with the error. */
const HINTS: Readonly<Record<ErrorCode, string | undefined>> = {
  BadConfiguration: "set KUBECONFIG, or say --kubeconfig and --context",
  Unauthorized: "the API server does not know these credentials: kubectl auth whoami",
  Forbidden: undefined,
  NotFound: `it is gone since, or what answered is no API server: run the command again; ${CLUSTER_INFO}`,
  AlreadyExists: undefined,
  Conflict: "somebody else changed it meanwhile: run the command again",
  Expired: "the cluster changes faster than it is read: run the command again",
  Invalid: undefined,
  Throttled: "the API server, or a webhook, refuses for now: run the command again later",
  WebhookFailed:
    "the webhook that the message names does not answer, and fails closed: see if its pods run; zonewise doctor",
  Timeout: "the API server did not answer in time: see --request-timeout",
  Cancelled: undefined,
  Unreachable: CLUSTER_INFO,
  ServerError: `the server that answered has failed, or is no API server: ${CLUSTER_INFO}`,
  LeaseLost: undefined,
};

/** No request was sent: the kubeconfig's user has a credential plugin, or files, that give no credentials. */
const NO_CREDENTIALS = "the user of the kubeconfig gives no credentials, nothing was asked: kubectl auth whoami";

/** `… cannot list resource "rolloutgroups" in API group "zonewise.dev" in the namespace "cache"` */
const RIGHT =
  /User "(?<user>[^"]*)" cannot (?<verb>\w+) resource "(?<resource>[^"]*)" in API group "(?<group>[^"]*)"(?: in the namespace "(?<namespace>[^"]*)")?/;

export function explainError(error: unknown): ErrorText {
  const message = messageOf(error).trim();
  const right = hasCode(error, "Forbidden") ? RIGHT.exec(message)?.groups : undefined;
  if (right) return explainRight(right);
  const hint = hintOf(error);
  return { message, ...(hint !== undefined && { hint }) };
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
