/** What an error of the API server means for the user of the CLI, and what to do. Pure. */
import { hasCode, messageOf, type ErrorCode } from "../../infra/errors.ts";

export interface ErrorText {
  readonly message: string;
  readonly hint?: string;
}

const HINTS: Partial<Record<ErrorCode, string>> = {
  BadConfiguration: "set KUBECONFIG, or say --kubeconfig and --context",
  Unauthorized: "the API server does not know these credentials: kubectl auth whoami",
  Unreachable: "kubectl cluster-info says if the API server is there",
  Timeout: "the API server did not answer in time: see --request-timeout",
  Conflict: "somebody else changed it meanwhile: run the command again",
};

/** `… cannot list resource "rolloutgroups" in API group "zonewise.dev" in the namespace "cache"` */
const RIGHT =
  /User "(?<user>[^"]*)" cannot (?<verb>\w+) resource "(?<resource>[^"]*)" in API group "(?<group>[^"]*)"(?: in the namespace "(?<namespace>[^"]*)")?/;

export function explainError(error: unknown): ErrorText {
  const message = messageOf(error);
  const right = hasCode(error, "Forbidden") ? RIGHT.exec(message)?.groups : undefined;
  if (right) return explainRight(right);
  const hint = Object.entries(HINTS).find(([code]) => hasCode(error, code as ErrorCode))?.[1];
  return { message, ...(hint !== undefined && { hint }) };
}

const READS = new Set(["get", "list", "watch"]);

function explainRight({ user = "", verb = "", resource = "", group, namespace }: Readonly<Record<string, string | undefined>>): ErrorText {
  const what = group ? `${resource}.${group}` : resource;
  const where = namespace === undefined ? "in the whole cluster" : `in namespace ${namespace}`;
  const role = READS.has(verb) ? "zonewise-viewer" : "zonewise-operator";
  return { message: `${user} may not ${verb} ${what} ${where}`, hint: `the ClusterRole ${role} allows it: infra/manifests/cli` };
}
