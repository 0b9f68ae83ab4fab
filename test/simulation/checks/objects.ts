/** What Prometheus guards: a gate between the zones of the group, and a StatefulSet that rolls pod by pod. */
import type { Draft } from "../../emulator/objects.ts";
import type { Draw } from "../draw.ts";
import { GROUP, NAMESPACE } from "../names.ts";
import { type Asked, PROMETHEUS_URL } from "./prometheus.ts";

export const GATES = "rolloutgates.zonewise.dev";
export const GATE = "errors";
export const PHASED_ROLLOUTS = "phasedrollouts.sts.plus";
/** The StatefulSet, and its PhasedRollout. */
export const PHASED = "db";
export const PHASED_REPLICAS = 3;

export interface CheckShape extends Asked {
  readonly initialDelaySeconds: number;
  readonly periodSeconds: number;
  readonly successThreshold: number;
  /** Without it a check never fails for good. */
  readonly failureThreshold: number | undefined;
}

export interface GateShape extends CheckShape {
  readonly when: readonly string[];
  readonly onError: "Wait" | "Proceed";
}

export interface PhasedShape extends CheckShape {
  readonly ordered: boolean;
  readonly finalCheck: boolean;
}

function drawCheck(draw: Draw): CheckShape {
  return {
    successWhen: draw.of(["NoData", "Data"] as const),
    initialDelaySeconds: draw.of([0, 5]),
    periodSeconds: draw.of([5, 10, 15]),
    successThreshold: draw.between(1, 3),
    failureThreshold: draw.chance(0.5) ? draw.between(2, 4) : undefined,
    last: draw.chance(0.7) ? "good" : draw.of(["bad", "silent", "partial"] as const),
  };
}

export const drawGate = (draw: Draw): GateShape => ({
  ...drawCheck(draw),
  when: draw.of([
    ["BeforeFirstZone", "BetweenZones"],
    ["BeforeFirstZone", "BetweenZones"],
    ["BetweenZones"],
    ["BeforeFirstZone", "BetweenZones", "AfterLastZone"],
  ]),
  onError: draw.chance(0.8) ? "Wait" : "Proceed",
});

export const drawPhased = (draw: Draw): PhasedShape => ({
  ...drawCheck(draw),
  ordered: draw.chance(0.5),
  finalCheck: draw.chance(0.3),
});

/** Both name the check that their expression begins with. */
export const GATE_CHECK = "gate";
export const PHASED_CHECK = "phased";

function checkObject(expr: string, shape: CheckShape) {
  const { successWhen, initialDelaySeconds, periodSeconds, successThreshold, failureThreshold } = shape;
  return {
    query: { url: PROMETHEUS_URL, expr },
    successWhen,
    initialDelaySeconds,
    periodSeconds,
    successThreshold,
    ...(failureThreshold !== undefined && { failureThreshold }),
  };
}

export function gateObject(shape: GateShape, expr = GATE_CHECK): Draft {
  const { when, onError } = shape;
  return {
    apiVersion: "zonewise.dev/v1",
    kind: "RolloutGate",
    metadata: { name: GATE, namespace: NAMESPACE },
    spec: { group: GROUP, when, onError, mode: "Enforce", checks: [{ name: "errors", ...checkObject(expr, shape) }] },
  };
}

export function phasedObject(shape: PhasedShape, expr = PHASED_CHECK): Draft {
  const { successWhen, query, ...check } = checkObject(expr, shape);
  return {
    apiVersion: "sts.plus/v1alpha1",
    kind: "PhasedRollout",
    metadata: { name: PHASED, namespace: NAMESPACE },
    spec: {
      targetRef: PHASED,
      finalCheck: shape.finalCheck,
      check: { ...check, query: { ...query, successWhen } },
    },
  };
}

/** As its user wrote it, beside the group. */
export function phasedSet({ ordered }: PhasedShape, build = 1, partition = 0): Draft {
  const labels = { app: PHASED, name: PHASED };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: PHASED, namespace: NAMESPACE, labels },
    spec: {
      replicas: PHASED_REPLICAS,
      serviceName: PHASED,
      selector: { matchLabels: labels },
      podManagementPolicy: ordered ? "OrderedReady" : "Parallel",
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition } },
      template: { metadata: { labels }, spec: { containers: [{ name: "main", image: `db:${build}` }] } },
    },
  };
}
