/** All kustomizations that users may apply, as they may apply them. */
import { type Manifest, renderManifests, type Rendering, WITH_STATUS_PAGE } from "../stage/manifests.ts";

const COMPLETE = "infra/manifests/complete";

/** By what tests call them. Knative's own kinds are among the objects, and Knative need not be there. */
export const OVERLAYS: readonly (readonly [string, Rendering])[] = [
  [COMPLETE, { folder: COMPLETE }],
  [`${COMPLETE} failing open`, { folder: COMPLETE, components: ["infra/manifests/webhooks/ignore"] }],
  [`${COMPLETE} with the status page`, { folder: COMPLETE, ...WITH_STATUS_PAGE }],
  ["infra/manifests/reconciler", { folder: "infra/manifests/reconciler", components: ["infra/manifests/namespace"] }],
  ["infra/manifests/all-namespaces", { folder: "infra/manifests/all-namespaces" }],
  ["infra/manifests/crds", { folder: "infra/manifests/crds" }],
  ["infra/manifests/pod-deletion-policy", { folder: "infra/manifests/pod-deletion-policy" }],
  ["infra/manifests/pod-deletion-webhook", { folder: "infra/manifests/pod-deletion-webhook" }],
  ["infra/manifests/replicas-policy", { folder: "infra/manifests/replicas-policy" }],
  ["infra/manifests/reconciler-policy", { folder: "infra/manifests/reconciler-policy" }],
  ["infra/manifests/phased-policy", { folder: "infra/manifests/phased-policy" }],
  ["infra/manifests/migration", { folder: "infra/manifests/migration" }],
  ["infra/manifests/migration/webhooks", { folder: "infra/manifests/migration/webhooks" }],
  ["knative", { folder: "knative" }],
  ["knative/events", { folder: "knative/events" }],
];

/** Renders one of them for a namespace; the one for all namespaces names its own. */
export async function renderOverlay(namespace: string, { edit, ...rendering }: Rendering): Promise<Manifest[]> {
  const setNamespace = (text: string): string => text.replace("namespace: zonewise\n", `namespace: ${namespace}\n`);
  return await renderManifests(namespace, {
    ...rendering,
    edit: { "infra/manifests/all-namespaces/kustomization.yaml": setNamespace, ...edit },
  });
}
