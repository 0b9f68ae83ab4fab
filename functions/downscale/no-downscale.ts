/**
 * `/admission/no-downscale`: refuses downscales of objects with the label (§3). Fails open: undecidable requests are
 * allowed with a warning.
 */
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../infra/errors.ts";
import {
  deployments,
  replicaSets,
  type Resource,
  type StatefulSet,
  statefulSets,
} from "../../infra/kubernetes/resources.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import type { AdmissionRequest, Answer, Webhook } from "../http/webhook.ts";
import { allowWithWarning, denyByLabel, type Downscale, findDownscale } from "./find-downscale.ts";

type Labels = Readonly<Record<string, string>>;

const PARENTS: ReadonlyMap<string, Resource<Pick<StatefulSet, "metadata">>> = new Map([
  ["statefulsets", statefulSets],
  ["deployments", deployments],
  ["replicasets", replicaSets],
]);

export function createNoDownscale({ cluster }: { readonly cluster: Cluster }): Webhook {
  /** The labels before the change: a request may not remove the label and the replicas at once. */
  async function labelsOf(
    { resource, namespace = "", name = "" }: AdmissionRequest,
    { old }: Downscale,
    signal: AbortSignal,
  ): Promise<Labels> {
    if (old.kind !== "Scale") return old.labels;
    const parent = resource.group === "apps" ? PARENTS.get(resource.resource) : undefined;
    if (!parent) throw new RolloutError("Invalid", `unsupported resource ${resource.resource}`);
    return (await cluster.get(parent, { namespace, name }, { signal })).metadata?.labels ?? {};
  }

  return {
    name: "noDownscale",
    paths: ["/admission/no-downscale"],
    async handle(request, { signal }) {
      const found = findDownscale(request);
      if ("allowed" in found) return found;
      try {
        const labels = await labelsOf(request, found, signal);
        if (labels[LABELS.noDownscale] !== "true") return { allowed: true, reason: "NotLabelled" };
        return denyByLabel({ request, downscale: found });
      } catch (error) {
        return failOpen("ParentUnknown", error, request);
      }
    },
    onFault: (error, request) => failOpen("Fault", error, request),
  };
}

function failOpen(reason: string, error: unknown, { resource, namespace = "", name = "" }: AdmissionRequest): Answer {
  const reasonText = error instanceof RolloutError ? error.message : "internal error";
  return allowWithWarning(
    reason,
    `can't get ${resource.resource}/${name} in namespace ${namespace}, allowing the change: ${reasonText}`,
  );
}
