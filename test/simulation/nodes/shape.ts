/** Nodes with a policy of updates, as the seed draws them: how many, how their hosts behave, and what is refused. */
import type { Draft } from "../../emulator/objects.ts";
import { MANAGED_LABEL, MANAGED_VALUE } from "../../../reconciler/nodes/shadow.ts";
import { type Draw, drawFrom } from "../draw.ts";
import { make } from "../../builders/objects.ts";

/** What a host does wrong. */
export const HOST_FAULTS = [
  /** Another client's action runs. */
  "hostBusy",
  /** An action fails, as it begins or later. */
  "hostFails",
  /** The connection breaks: the action may have begun. */
  "hostLost",
  /** The boot loader goes back. */
  "rollsBack",
  "rebootSlow",
  /** The host stays down until somebody repairs it. */
  "neverBack",
] as const;
export type HostFault = (typeof HOST_FAULTS)[number];

export interface NodesShape {
  readonly perZone: number;
  readonly maxConcurrent: number;
  /** Updates start in the first five minutes of ten. */
  readonly windowed: boolean;
  readonly maxFailed: number;
  readonly minReadySeconds: number;
  readonly drain: { readonly timeoutSeconds: number; readonly onTimeout: "Uncordon" | "Reboot" };
  readonly deadlines: Readonly<Record<"stageSeconds" | "holdSeconds" | "rebootSeconds" | "recoverSeconds", number>>;
  readonly protects: boolean;
  readonly nodeApis: number;
  /** Seconds from the exclusion from load balancers to the drain. */
  readonly exclusionSeconds: number;
  readonly actionMs: { readonly refresh: number; readonly prepare: number; readonly activate: number };
  readonly rebootMs: number;
  /** Updates start every few minutes, until all that could start have. */
  readonly oneShot?: boolean;
  /** Probability of each fault of a host. */
  readonly faults: Readonly<Record<HostFault, number>>;
}

/** Apart from all else that the seed draws: a history without nodes is the same as if there were none. */
const STREAM = 0x6e6f6465;
/** Of so many seeds one has nodes. */
const ONE_OF = 4;

/** What this seed has of nodes, and the stream for what happens to them. */
export function drawNodes(seed: number): { readonly nodes: NodesShape | undefined; readonly nodeDraw: Draw } {
  const draw = drawFrom(seed ^ STREAM);
  if (draw.below(ONE_OF) > 0) return { nodes: undefined, nodeDraw: draw };
  return { nodes: drawNodesShape(draw), nodeDraw: draw };
}

export function drawNodesShape(draw: Draw): NodesShape {
  const level = (): number => (draw.chance(0.5) ? 0 : draw.of([0.01, 0.03, 0.1]));
  return {
    perZone: draw.of([1, 2, 2, 3]),
    maxConcurrent: draw.of([1, 1, 2, 3]),
    windowed: draw.chance(0.25),
    maxFailed: draw.of([1, 1, 3]),
    minReadySeconds: draw.of([0, 10, 30]),
    drain: { timeoutSeconds: draw.of([60, 120, 3600]), onTimeout: draw.chance(0.2) ? "Reboot" : "Uncordon" },
    deadlines: {
      stageSeconds: draw.of([60, 1800]),
      holdSeconds: draw.of([60, 600]),
      rebootSeconds: draw.of([120, 900]),
      recoverSeconds: draw.of([60, 300]),
    },
    protects: draw.chance(0.3),
    nodeApis: draw.between(1, 3),
    exclusionSeconds: draw.of([0, 0, 5]),
    actionMs: { refresh: draw.of([200, 3000]), prepare: draw.of([1000, 20_000]), activate: draw.of([300, 5000]) },
    rebootMs: draw.of([5000, 20_000, 60_000]),
    faults: Object.fromEntries(HOST_FAULTS.map((fault) => [fault, level()])) as Record<HostFault, number>,
  };
}

export const SHADOWS = "bottlerocketshadows.brupop.bottlerocket.aws";
export const POLICIES = "nodeupdatepolicies.zonewise.dev";
export const POLICY = "default";
export const ZONE_LABEL = "topology.kubernetes.io/zone";
export const FROM = "1.0.0";
export const TO = "1.1.0";

export interface FleetNode {
  readonly name: string;
  readonly zone: string;
}

/** The nodes of the zones of a group. */
export const fleetOf = (zones: readonly string[], { perZone }: NodesShape): readonly FleetNode[] =>
  zones.flatMap((zone) => Array.from({ length: perZone }, (_, i) => ({ name: `node-${zone.at(-1)}-${i + 1}`, zone })));

/** The Node as its kubelet registers it. */
export const nodeObject = ({ name, zone }: FleetNode): Draft =>
  make("Node", name, { labels: { [ZONE_LABEL]: zone, [MANAGED_LABEL]: MANAGED_VALUE }, spec: {} });

/** Minutes in which updates may start, of each ten. */
const OPEN_MINUTES = 5;
const WINDOW = `* ${[0, 10, 20, 30, 40, 50].map((from) => `${from}-${from + OPEN_MINUTES - 1}`).join(",")} * * * *`;

/** Minutes from one one-shot to the next. */
export const ONE_SHOT_MINUTES = 3;
const ONE_SHOT = `0 */${ONE_SHOT_MINUTES} * * * *`;

export function policyObject(shape: NodesShape): Draft {
  const { maxConcurrent, windowed, maxFailed, drain, deadlines, protects } = shape;
  return make("NodeUpdatePolicy", POLICY, {
    spec: {
      enabled: true,
      maxConcurrent,
      maxFailed,
      drain,
      deadlines,
      health: { minReadySeconds: shape.minReadySeconds, timeoutSeconds: 300 },
      features: { protectFromScaleDown: protects },
      ...(windowed && { window: { cron: WINDOW } }),
      ...(shape.oneShot && { window: { cron: ONE_SHOT } }),
    },
  });
}
