/** What Prometheus guards: a gate between the zones of the group, and a StatefulSet that rolls pod by pod. */
import type { Draft } from "../../emulator/objects.ts";
import { type Draw, drawFrom } from "../draw.ts";
import { GROUP, NAMESPACE } from "../names.ts";
import { type Asked, PROMETHEUS_URL } from "./prometheus.ts";
import { make } from "../../builders/objects.ts";

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

export interface GateShape extends CheckShape, Partial<GateMore> {
  readonly when: readonly string[];
  readonly onError: "Wait" | "Proceed";
}

export interface GateMore {
  /** Between the end of a zone and the begin of the next one; 0 for none. */
  readonly soakSeconds: number;
  /** The gate only soaks. */
  readonly asksNothing: boolean;
}

/** Apart from all else that the seed draws. */
const STREAM = 0x736f616b;

/** What a gate of this seed has beside what `drawGate` gave it. */
export function drawGateMore(seed: number, gate: GateShape): GateShape {
  const draw = drawFrom(seed ^ STREAM);
  const soakSeconds = draw.chance(0.5) ? draw.of([30, 90]) : 0;
  const asksNothing = soakSeconds > 0 && draw.chance(0.3);
  return {
    ...gate,
    soakSeconds,
    asksNothing,
    ...(asksNothing && { last: "good" as const }),
  };
}

export interface PhasedShape extends CheckShape {
  readonly ordered: boolean;
  readonly finalCheck: boolean;
  /** Until its pods are ready; undefined for soon. */
  readonly readyAfterMs?: number;
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

/** Each names the check that its expressions begin with. */
export const GATE_CHECK = "gate";
export const PHASED_CHECK = "phased";

export function checkObject(expr: string, shape: CheckShape) {
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
  const { when, onError, soakSeconds = 0, asksNothing = false } = shape;
  const check = { name: "errors", ...checkObject(expr, shape) };
  return make("RolloutGate", GATE, {
    namespace: NAMESPACE,
    spec: {
      group: GROUP,
      when,
      onError,
      mode: "Enforce",
      ...(soakSeconds > 0 && { soakSeconds }),
      ...(!asksNothing && { checks: [check] }),
    },
  });
}

export function phasedObject(shape: PhasedShape, expr = PHASED_CHECK): Draft {
  const { successWhen, query, ...check } = checkObject(expr, shape);
  return make("PhasedRollout", PHASED, {
    namespace: NAMESPACE,
    spec: {
      targetRef: PHASED,
      finalCheck: shape.finalCheck,
      check: { ...check, query: { ...query, successWhen } },
    },
  });
}

/** As its user wrote it, beside the group. */
export function phasedSet({ ordered, readyAfterMs }: PhasedShape, build = 1, partition = 0): Draft {
  const labels = { app: PHASED, name: PHASED };
  const annotations = readyAfterMs !== undefined && { annotations: { "sim/ready-after-ms": String(readyAfterMs) } };
  return make("StatefulSet", PHASED, {
    namespace: NAMESPACE,
    labels,
    spec: {
      replicas: PHASED_REPLICAS,
      serviceName: PHASED,
      selector: { matchLabels: labels },
      podManagementPolicy: ordered ? "OrderedReady" : "Parallel",
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition } },
      template: {
        metadata: { labels, ...annotations },
        spec: { containers: [{ name: "main", image: `db:${build}` }] },
      },
    },
  });
}
