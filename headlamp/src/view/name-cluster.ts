/** One page shows several clusters: labels for screen readers also contain the cluster's name. Pure. */
import { type ComponentChild, type ComponentChildren, h, isValidElement, type VNode } from "preact";

/** The id of the heading with the cluster's name, in the cluster's own shadow root. */
export const CLUSTER_ID = "cluster";

type Props = Readonly<Record<string, unknown>> & { readonly children?: ComponentChildren };

/** The same elements, with the cluster in their labels. */
export function nameCluster(child: ComponentChildren, cluster: string): ComponentChildren {
  if (Array.isArray(child))
    return (child as ComponentChild[]).map((one) => nameCluster(one, cluster) as ComponentChild);
  if (!isValidElement(child)) return child;
  const { type, key, props } = child as VNode<Props>;
  const { children, "aria-label": label, "aria-labelledby": ids, ...rest } = props;
  const named = {
    ...rest,
    key,
    ...(typeof label === "string" && { "aria-label": `${label} of cluster ${cluster}` }),
    ...(typeof ids === "string" && { "aria-labelledby": `${ids} ${CLUSTER_ID}` }),
  };
  return h(type as string, named, nameCluster(children, cluster));
}
