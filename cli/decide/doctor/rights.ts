/**
 * The RBAC rights that the reconciler needs in each namespace that it serves: the rules of
 * infra/manifests/reconciler/rbac.yaml, one right per row. Pure.
 */
export interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  /** The object's name; without it, the right is for all objects. */
  readonly name?: string;
  /** Without it, the right is for the whole cluster. */
  readonly namespace?: string;
}

const RIGHTS = [
  ...["get", "list", "watch", "patch"].map((verb) => `${verb} apps/statefulsets`),
  "patch apps/statefulsets/status",
  ...["get", "list", "delete"].map((verb) => `${verb} /pods`),
  "create /pods/eviction",
  ...["create", "get", "patch"].map((verb) => `${verb} /events`),
  ...["get", "list"].map((verb) => `${verb} rollout-operator.grafana.com/zoneawarepoddisruptionbudgets`),
  "update rollout-operator.grafana.com/zoneawarepoddisruptionbudgets/status",
  ...["list", "create", "patch", "delete"].map((verb) => `${verb} zonewise.dev/rolloutgroups`),
  "update zonewise.dev/rolloutgroups/status",
  ...["get", "list", "create", "update"].map((verb) => `${verb} coordination.k8s.io/leases`),
  "list zonewise.dev/rolloutgates",
  "update zonewise.dev/rolloutgates/status",
  ...["get", "list", "patch"].map((verb) => `${verb} sts.plus/phasedrollouts`),
  "update sts.plus/phasedrollouts/status",
];

export const RECONCILER_RIGHTS: readonly Right[] = RIGHTS.map(readRight);

/** `verb group/resource[/subresource]`, the core group as "". */
export function readRight(text: string): Right {
  const [verb = "", path = ""] = text.split(" ");
  const [group = "", resource = "", subresource] = path.split("/");
  return { verb, group, resource, ...(subresource !== undefined && { subresource }) };
}

export const describeRight = ({ verb, group, resource, subresource }: Right): string =>
  `${verb} ${resource}${subresource === undefined ? "" : `/${subresource}`}${group === "" ? "" : `.${group}`}`;
