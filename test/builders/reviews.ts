/** Reviews as the API server sends them. */
import type { AdmissionRequest } from "../../functions/http/webhook.ts";

const REVIEWS = {
  StatefulSet: {
    operation: "UPDATE",
    kind: { group: "apps", version: "v1", kind: "StatefulSet" },
    resource: { group: "apps", version: "v1", resource: "statefulsets" },
  },
  Pod: {
    operation: "DELETE",
    kind: { group: "", version: "v1", kind: "Pod" },
    resource: { group: "", version: "v1", resource: "pods" },
  },
  Eviction: {
    operation: "CREATE",
    subResource: "eviction",
    kind: { group: "policy", version: "v1", kind: "Eviction" },
    resource: { group: "", version: "v1", resource: "pods" },
  },
} as const;

/** The update of a StatefulSet, the deletion of a pod, or its eviction. */
export const review = (
  of: keyof typeof REVIEWS,
  name: string,
  more: Partial<AdmissionRequest> = {},
): AdmissionRequest => ({ uid: "u", namespace: "default", name, dryRun: false, ...REVIEWS[of], ...more });
