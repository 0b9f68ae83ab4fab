/**
 * Groups as charts and jsonnet libraries render them, as facts: names, labels, annotations, selectors, services and
 * budgets. What Zonewise does not read (volumes, probes, arguments) is left out.
 *
 *   mimir-distributed 6.1 (templates/ingester, templates/store-gateway), and the budget of rollout-operator 0.47
 *   Mimir's jsonnet: store-gateway-autoscaling, ingest-storage-ingester-autoscaling
 *   loki 6 (production/helm/loki/templates/ingester)
 *   Tempo's jsonnet: microservices/live-store
 */

export interface ChartZone {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly selector: Readonly<Record<string, string>>;
  readonly serviceName: string;
  /** Absent where an autoscaler or a ReplicaTemplate has them. */
  readonly replicas?: number;
  /** Absent: the API server's default, OrderedReady. */
  readonly podManagementPolicy?: "Parallel";
}

export interface ChartGroup {
  readonly group: string;
  readonly zones: readonly ChartZone[];
  /** Of a ReplicaTemplate. */
  readonly template?: string;
  /** What changes the replicas: the first zone's, the template's, or each zone's own. */
  readonly scaledBy: "leader" | "template" | "each zone";
  /** Whether a smaller leader or template makes all zones smaller at once. */
  readonly shrinks: "all" | "the first";
  readonly budgets: readonly object[];
}

const MIN_TIME = "grafana.com/min-time-between-zones-downscale";
const LEADER = "grafana.com/rollout-downscale-leader";
const MIRROR = "grafana.com/rollout-mirror-replicas-from-resource";
const PREPARE = { "grafana.com/prepare-downscale": "true" };
export const ROLLOUT_OPERATOR = "rollout-operator.grafana.com/v1";

const preparedAt = (path: string, port: number): Record<string, string> => ({
  "grafana.com/prepare-downscale-http-path": path,
  "grafana.com/prepare-downscale-http-port": String(port),
});

const zoneAware = (name: string, group: string, spec: object): object => ({
  apiVersion: ROLLOUT_OPERATOR,
  kind: "ZoneAwarePodDisruptionBudget",
  metadata: { name, labels: { name } },
  spec: { selector: { matchLabels: { "rollout-group": group } }, ...spec },
});

const core = (name: string, group: string): object => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name, labels: { name } },
  spec: { selector: { matchLabels: { "rollout-group": group } }, maxUnavailable: 1 },
});

/** The labels of Helm's charts for a component. */
const helm = (chart: string, component: string): Record<string, string> => ({
  "app.kubernetes.io/name": chart,
  "app.kubernetes.io/instance": "release",
  "app.kubernetes.io/component": component,
});

/** `port`: of the pods' endpoints. */
export const CHART_GROUPS: Readonly<Record<string, (port: number) => ChartGroup>> = {
  "mimir-distributed: ingesters, prepared, 12 h between zones": (port) => ({
    group: "ingester",
    zones: ["a", "b", "c"].map((zone) => ({
      name: `release-mimir-ingester-zone-${zone}`,
      labels: {
        ...helm("mimir", "ingester"),
        "app.kubernetes.io/part-of": "memberlist",
        "app.kubernetes.io/managed-by": "Helm",
        name: `ingester-zone-${zone}`,
        "rollout-group": "ingester",
        zone: `zone-${zone}`,
        ...PREPARE,
        [MIN_TIME]: "12h",
      },
      annotations: {
        "rollout-max-unavailable": "50",
        ...preparedAt("ingester/prepare-shutdown", port),
        ...(zone !== "a" && { [LEADER]: "release-mimir-ingester-zone-a" }),
      },
      selector: { ...helm("mimir", "ingester"), "rollout-group": "ingester", zone: `zone-${zone}` },
      serviceName: "release-mimir-ingester-headless",
      replicas: 2,
      podManagementPolicy: "Parallel",
    })),
    scaledBy: "leader",
    shrinks: "the first",
    budgets: [zoneAware("ingester-rollout", "ingester", { maxUnavailable: 1, podNamePartitionRegex: "" })],
  }),

  "Mimir's jsonnet: store-gateways with a chain of leaders and a backup zone": (port) => ({
    group: "store-gateway",
    zones: (
      [
        ["a", undefined],
        ["a-backup", "a"],
        ["b", "a"],
        ["c", "b"],
      ] as const
    ).map(([zone, leader]) => ({
      name: `store-gateway-zone-${zone}`,
      labels: { "rollout-group": "store-gateway", ...PREPARE, [MIN_TIME]: "0s" },
      annotations: {
        "rollout-max-unavailable": "50",
        ...preparedAt("store-gateway/prepare-shutdown", port),
        ...(leader !== undefined && { [LEADER]: `store-gateway-zone-${leader}` }),
      },
      selector: { name: `store-gateway-zone-${zone}`, "rollout-group": "store-gateway" },
      serviceName: `store-gateway-zone-${zone}`,
      replicas: 1,
    })),
    scaledBy: "leader",
    shrinks: "all",
    budgets: [zoneAware("store-gateway-rollout", "store-gateway", { maxUnavailablePercentage: 50 })],
  }),

  "Mimir's jsonnet: ingesters of ingest storage, one budget per partition": (port) => ({
    group: "ingester",
    zones: ["a", "b", "c"].map((zone) => ({
      name: `ingester-zone-${zone}`,
      labels: { "rollout-group": "ingester", ...PREPARE, [MIN_TIME]: "0" },
      annotations: {
        "rollout-max-unavailable": "25",
        ...preparedAt("ingester/prepare-shutdown", port),
        ...(zone === "a"
          ? {
              [`${MIRROR}-name`]: "ingester-zone-a",
              [`${MIRROR}-kind`]: "ReplicaTemplate",
              [`${MIRROR}-api-version`]: ROLLOUT_OPERATOR,
              "grafana.com/rollout-delayed-downscale": "2s",
              "grafana.com/rollout-prepare-delayed-downscale-url": `http://pod:${port}/ingester/prepare-partition-downscale`,
            }
          : { [LEADER]: "ingester-zone-a" }),
      },
      selector: { name: `ingester-zone-${zone}`, "rollout-group": "ingester" },
      serviceName: `ingester-zone-${zone}`,
      podManagementPolicy: "Parallel",
    })),
    template: "ingester-zone-a",
    scaledBy: "template",
    shrinks: "all",
    budgets: [
      zoneAware("ingester-rollout", "ingester", {
        maxUnavailable: 1,
        podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)",
        podNameRegexGroup: 1,
      }),
    ],
  }),

  "loki: ingesters that each have an autoscaler": () => ({
    group: "loki-ingester",
    zones: ["a", "b", "c"].map((zone) => ({
      name: `loki-ingester-zone-${zone}`,
      labels: {
        ...helm("loki", "ingester"),
        "app.kubernetes.io/part-of": "memberlist",
        name: `loki-ingester-zone-${zone}`,
        "rollout-group": "loki-ingester",
      },
      annotations: { "rollout-max-unavailable": "1" },
      selector: { ...helm("loki", "ingester"), name: `loki-ingester-zone-${zone}`, "rollout-group": "loki-ingester" },
      serviceName: `loki-ingester-zone-${zone}`,
      podManagementPolicy: "Parallel",
    })),
    scaledBy: "each zone",
    shrinks: "all",
    budgets: [core("loki-ingester-rollout", "loki-ingester")],
  }),

  "Tempo's jsonnet: live-stores of two zones that mirror one template": (port) => ({
    group: "live-store",
    zones: ["a", "b"].map((zone) => ({
      name: `live-store-zone-${zone}`,
      labels: { "rollout-group": "live-store", ...PREPARE, [MIN_TIME]: "0" },
      annotations: {
        "rollout-max-unavailable": "10",
        [`${MIRROR}-name`]: "live-store",
        [`${MIRROR}-kind`]: "ReplicaTemplate",
        [`${MIRROR}-api-version`]: ROLLOUT_OPERATOR,
        ...(zone === "b" && { [`${MIRROR}-write-back`]: "false" }),
        ...preparedAt("live-store/prepare-downscale", port),
        "grafana.com/rollout-delayed-downscale": "2s",
        "grafana.com/rollout-prepare-delayed-downscale-url": `http://pod:${port}/live-store/prepare-partition-downscale`,
      },
      selector: { name: `live-store-zone-${zone}`, "rollout-group": "live-store" },
      serviceName: `live-store-zone-${zone}`,
      podManagementPolicy: "Parallel",
    })),
    template: "live-store",
    scaledBy: "template",
    shrinks: "all",
    budgets: [core("live-store-rollout-pdb", "live-store")],
  }),
};
