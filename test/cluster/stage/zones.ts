/** Builds the StatefulSets of a scenario, and checks their progress. */
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";

export interface ZoneOptions {
  /** "" for a StatefulSet without the label. */
  readonly group: string;
  readonly name: string;
  readonly replicas?: number;
  readonly image?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly strategy?: object;
  /** True if it selects its pods by the label of the group, too, as the field's charts do. */
  readonly selectsByGroup?: boolean;
  readonly sim?: Sim;
}

/** Annotations that control the simulated kubelets of a test cluster; real kubelets ignore them. */
export type Sim = Readonly<Record<string, string>>;

const FAST: Sim = { "sim/ready-after-ms": "300", "sim/exit-after-ms": "30" };

export function buildZone(options: ZoneOptions): StatefulSet {
  const {
    group,
    name,
    replicas = 3,
    image = "app:1",
    annotations = {},
    labels = {},
    strategy = { type: "OnDelete" },
    selectsByGroup = false,
    sim = {},
  } = options;
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: {
      name,
      labels: { ...labels, ...(group !== "" && { "rollout-group": group }) },
      annotations: { ...annotations },
    },
    spec: {
      replicas,
      serviceName: name,
      podManagementPolicy: "Parallel",
      updateStrategy: strategy,
      selector: { matchLabels: { zone: name, ...(selectsByGroup && { "rollout-group": group }) } },
      template: buildTemplate({ group, name, image, sim }),
    },
  };
}

/** What a namespace that enforces the Pod Security Standard `restricted` asks of pods. */
export const RESTRICTED = {
  pod: { securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } } },
  container: { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } } },
};

interface TemplateOptions {
  readonly group: string;
  /** The zone's name. */
  readonly name: string;
  readonly image: string;
  readonly sim?: Sim;
}

export function buildTemplate({
  group,
  name,
  image,
  sim,
}: TemplateOptions): NonNullable<StatefulSet["spec"]>["template"] {
  return {
    // The original finds the pods of a zone by the label `name`.
    metadata: { labels: { zone: name, name, group, "rollout-group": group }, annotations: { ...FAST, ...sim } },
    spec: {
      ...RESTRICTED.pod,
      terminationGracePeriodSeconds: 5,
      containers: [{ name: "app", image, ...RESTRICTED.container }],
    },
  };
}

/** True once every pod has the image and is ready, and the update revision is recorded as the current one. */
export function isDone(set: StatefulSet | undefined, image: string): boolean {
  const { spec, status, metadata } = set ?? {};
  const counts = [status?.replicas, status?.readyReplicas, status?.updatedReplicas];
  return (
    spec?.template.spec?.containers[0]?.image === image &&
    status?.observedGeneration === metadata?.generation &&
    counts.every((count) => count === spec.replicas) &&
    status?.currentRevision === status?.updateRevision
  );
}
