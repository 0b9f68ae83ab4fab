/** The shape of a world, which the seed draws: zones, pods, limits, budget, who scales, and which faults there are. */
import type { Draft } from "../emulator/objects.ts";
import type { Draw } from "./draw.ts";

export const NAMESPACE = "zonewise";
export const GROUP = "ingester";
export const BUDGET = "ingester";

export const FAULTS = [
  "requestLost",
  "answerLost",
  "slowRequest",
  "slowAnswer",
  "stale",
  "throttled",
  "serverError",
  "conflict",
  "killBefore",
  "killAfter",
  "frozen",
  "webhookUnreachable",
  "webhookSlow",
  "podRefuses",
  "watchCut",
] as const;
export type Fault = (typeof FAULTS)[number];

export interface Shape {
  readonly zones: readonly string[];
  readonly replicas: number;
  /** Pods of a zone that a rollout may take at once. */
  readonly maxUnavailable: number;
  /** Pods of a zone that may be unavailable by the budget; undefined without a budget. */
  readonly budget: number | undefined;
  /** The first zone is the leader of the others. */
  readonly followers: boolean;
  /** Pods are prepared before they are scaled away. */
  readonly prepared: boolean;
  /** Minutes between the downscales of two zones; 0 for none. */
  readonly minutesBetween: number;
  readonly webhookServers: number;
  /** Milliseconds by which each process's clock may be wrong. */
  readonly skewMs: number;
  readonly readyAfterMs: number;
  readonly exitAfterMs: number;
  /** Probability of each fault at a call site. */
  readonly faults: Readonly<Record<Fault, number>>;
  /** Humans' and drainers' actions. */
  readonly actions: number;
  /** Milliseconds until faults and humans stop. */
  readonly troubledMs: number;
}

/** Each seed has a mix of its own: some faults often, some not at all. */
export function drawShape(draw: Draw): Shape {
  const level = (): number => (draw.chance(0.5) ? 0 : draw.of([0.002, 0.01, 0.05]));
  const replicas = draw.between(1, 4);
  return {
    zones: ["a", "b", "c", "d"].slice(0, draw.between(2, 4)).map((zone) => `${GROUP}-zone-${zone}`),
    replicas,
    maxUnavailable: draw.between(1, 3),
    budget: draw.chance(0.85) ? draw.between(1, 2) : undefined,
    followers: draw.chance(0.4),
    prepared: draw.chance(0.4),
    minutesBetween: draw.chance(0.5) ? 3 : 0,
    webhookServers: draw.between(1, 3),
    skewMs: draw.of([0, 500, 5000, 120_000]),
    readyAfterMs: draw.of([300, 2000, 10_000]),
    exitAfterMs: draw.of([100, 1000, 8000]),
    faults: Object.fromEntries(FAULTS.map((fault) => [fault, level()])) as Record<Fault, number>,
    actions: draw.between(1, 10),
    troubledMs: draw.between(60, 300) * 1000,
  };
}

/** A zone as its user wrote it. */
export function zoneObject(shape: Shape, name: string): Draft {
  const { zones, replicas, maxUnavailable, followers, prepared, minutesBetween, readyAfterMs, exitAfterMs } = shape;
  const leader = zones[zones.indexOf(name) - 1];
  const labels = { app: GROUP, name };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: {
      name,
      namespace: NAMESPACE,
      labels: {
        app: GROUP,
        "rollout-group": GROUP,
        ...(prepared && { "grafana.com/prepare-downscale": "true" }),
        ...(minutesBetween > 0 && { "grafana.com/min-time-between-zones-downscale": `${minutesBetween}m` }),
      },
      annotations: {
        "rollout-max-unavailable": String(maxUnavailable),
        ...(followers && leader !== undefined && { "grafana.com/rollout-downscale-leader": leader }),
        ...(prepared && {
          "grafana.com/prepare-downscale-http-path": "prepare",
          "grafana.com/prepare-downscale-http-port": "80",
        }),
      },
    },
    spec: {
      replicas,
      serviceName: name,
      selector: { matchLabels: labels },
      podManagementPolicy: "Parallel",
      updateStrategy: { type: "OnDelete" },
      template: {
        metadata: {
          labels: { ...labels, "rollout-group": GROUP },
          annotations: { "sim/ready-after-ms": String(readyAfterMs), "sim/exit-after-ms": String(exitAfterMs) },
        },
        spec: { containers: [{ name: "main", image: "app:1" }] },
      },
    },
  };
}

export function budgetObject(maxUnavailable: number): Draft {
  return {
    apiVersion: "rollout-operator.grafana.com/v1",
    kind: "ZoneAwarePodDisruptionBudget",
    metadata: { name: BUDGET, namespace: NAMESPACE },
    spec: { maxUnavailable, selector: { matchLabels: { app: GROUP } } },
  };
}
