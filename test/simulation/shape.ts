/** The shape of a world, which the seed draws: zones, pods, limits, budget, who scales, and which faults there are. */
import type { Draft } from "../emulator/objects.ts";
import { type CertificateShape, drawCertificate } from "./certificates/trust.ts";
import { drawGate, drawPhased, type GateShape, type PhasedShape } from "./checks/objects.ts";
import type { Draw } from "./draw.ts";
import { BUDGET, GROUP, NAMESPACE } from "./names.ts";
import type { DeletionsShape } from "./deletions/shape.ts";
import { type HostFault, type NodesShape, ZONE_LABEL } from "./nodes/shape.ts";
import { windowAnnotations, type WindowsShape } from "./windows/shape.ts";
import { make } from "../builders/objects.ts";

export const FAULTS = [
  "requestLost",
  "answerLost",
  "slowRequest",
  "slowAnswer",
  "throttled",
  "serverError",
  "conflict",
  "killBefore",
  "killAfter",
  "frozen",
  "webhookUnreachable",
  "webhookSlow",
  "podRefuses",
  "prometheusLost",
  "watchCut",
  "controllerStalls",
] as const;
/** What is answered is gone by now, or does not arrive whole. */
export const ANSWER_FAULTS = ["expired", "bodyCut"] as const;
export type AnswerFault = (typeof ANSWER_FAULTS)[number];
/** What a watch does not tell while its connection stands, or tells late; `watchCut` breaks the connection. */
export const WATCH_FAULTS = ["watchMuted", "watchLate"] as const;
export type WatchFault = (typeof WATCH_FAULTS)[number];
export type Fault = (typeof FAULTS)[number] | AnswerFault | WatchFault | HostFault;

/** How evictions are judged and reserved. */
interface EvictionsShape {
  /** Evictions are judged by a validating webhook, which cannot pin them to a pod. */
  readonly validating: boolean;
  /** The definition of budgets is an older one, without the field for what is reserved. */
  readonly older: boolean;
  /** For which a pod of another zone must have been ready, by partition; 0 for no such time. */
  readonly delaySeconds: number;
}

export interface Shape {
  readonly zones: readonly string[];
  readonly replicas: number;
  /** Pods of a zone that a rollout may take at once. */
  readonly maxUnavailable: number;
  /** Batches of a zone grow up to that, one pod at first. */
  readonly accelerates: boolean;
  /** Pods of a zone that may be unavailable by the budget; undefined without a budget. */
  readonly budget: number | undefined;
  /** The budget counts in percent of a zone's pods instead; never by partition. */
  readonly percent?: number | undefined;
  /** The budget counts by partition: the pods of one ordinal. */
  readonly partitioned: boolean;
  /** The first zone is the leader of the others. */
  readonly followers: boolean;
  /** All zones take over the replicas of a ReplicaTemplate; undefined if none does. */
  readonly mirrored: { readonly delayMs: number } | undefined;
  /** The webhooks record downscales in a ConfigMap. */
  readonly tracker: boolean;
  /** Pods are prepared before they are scaled away. */
  readonly prepared: boolean;
  /** Seconds between the downscales of two zones; 0 for none. */
  readonly secondsBetween: number;
  /** By zone, where they differ. */
  readonly minTimes?: Readonly<Record<string, number>> | undefined;
  /** The ordinal of each zone's first pod; 0 if undefined. */
  readonly firstOrdinal?: number | undefined;
  /** Pods of a zone come up one after the other, and followers grow only once their leader's are ready. */
  readonly ordered?: true | undefined;
  /** A second namespace has objects of the same names; in the end it may forbid our processes everything. */
  readonly twin?: "well" | "forbids" | undefined;
  readonly webhookServers: number;
  /** Milliseconds by which each process's clock may be wrong. */
  readonly skewMs: number;
  /** The machine of a frozen process is suspended: its monotonic clock stands still, too. */
  readonly suspends: boolean;
  /** Objects that the API server gives at once in a list; undefined for as many as are asked for. */
  readonly pageSize: number | undefined;
  readonly readyAfterMs: number;
  readonly exitAfterMs: number;
  /** Prometheus is asked before zones. */
  readonly gate: GateShape | undefined;
  /** Beside the group, a StatefulSet that a PhasedRollout rolls. */
  readonly phased: PhasedShape | undefined;
  /** The certificate of the webhooks; without it the API server takes any. */
  readonly certificate: CertificateShape | undefined;
  /** The webhooks are registered under `Ignore`. */
  readonly ignore: boolean;
  /** Nodes of the zones whose hosts get updates; undefined where the zones' nodes are nobody's. */
  readonly nodes: NodesShape | undefined;
  /** Times at which pods of the zones may be replaced; undefined for always. */
  readonly windows: WindowsShape | undefined;
  /** A webhook judges deletions of pods; undefined where none does. */
  readonly deletions: DeletionsShape | undefined;
  readonly evictions?: EvictionsShape | undefined;
  /** Fields of manifests that people write wrong for a while; undefined for none. */
  readonly mistakes: number | undefined;
  /** Objects that nobody can read for a while; undefined for none. */
  readonly unreadable: number | undefined;
  /** What incidents of downscales need. */
  readonly downscales?:
    | {
        /** The webhooks of downscales are registered as the original has them: without conditions, for whole objects, too. */
        readonly asOriginal: boolean;
      }
    | undefined;
  /** Calls of an API group that each process may make a second; undefined for any number. */
  readonly callsPerSecond?: number | undefined;
  /** How many incidents of each area there are; undefined for none. */
  readonly incidents: Readonly<Record<string, number>> | undefined;
  /** Probability of each fault at the first call of a site; undefined for the seed's mix. */
  readonly firstCalls: number | undefined;
  /** At the first call of each site one fault happens for sure, which this number chooses; undefined for none. */
  readonly aim?: number | undefined;
  /** The same of what befalls answers on their way; undefined for nothing. */
  readonly answers: Readonly<Record<AnswerFault, number>> | undefined;
  /** The same of watches that stand and tell nothing, or late; undefined for none. */
  readonly watches: Readonly<Record<WatchFault, number>> | undefined;
  /** Probability of each fault at a call site. */
  readonly faults: Readonly<Record<(typeof FAULTS)[number], number>>;
  /** Humans' and drainers' actions. */
  readonly actions: number;
  /** When much happens at once, in milliseconds: the first time begins with a rollout. */
  readonly bursts: readonly number[];
  /** Milliseconds until faults and humans stop. */
  readonly troubledMs: number;
}

const NO_FAULTS = Object.fromEntries(FAULTS.map((fault) => [fault, 0])) as Shape["faults"];
/** No call meets a fault. */
export const CALM = {
  faults: NO_FAULTS,
  firstCalls: undefined,
  answers: undefined,
  watches: undefined,
} as const satisfies Partial<Shape>;

/** In which most of the faults and actions of a burst happen. */
export const BURST_MS = 20_000;

/** Each seed has a mix of its own: some faults often, some not at all; some seeds have none. */
export function drawShape(draw: Draw): Shape {
  const isCalm = draw.chance(0.1);
  const level = (): number => (isCalm || draw.chance(0.5) ? 0 : draw.of([0.002, 0.01, 0.05]));
  const replicas = draw.of([1, 2, 2, 3, 3, 4]);
  const scaledBy = draw.of(["people", "leader", "leader", "template", "template"] as const);
  const [followers, prepared] = [scaledBy === "leader", draw.chance(0.6)];
  const troubledMs = draw.between(90, 270) * 1000;
  return {
    zones: ["a", "b", "c", "d"].slice(0, draw.between(2, 4)).map((zone) => `${GROUP}-zone-${zone}`),
    replicas,
    maxUnavailable: draw.between(1, 3),
    accelerates: false,
    budget: draw.chance(0.85) ? draw.between(1, 2) : undefined,
    partitioned: draw.chance(0.3),
    followers,
    // Pods go only once they have been told for so long; 0 for no delay.
    mirrored: scaledBy === "template" ? { delayMs: draw.of([0, 60_000, 90_000]) } : undefined,
    tracker: draw.chance(0.3),
    prepared,
    // A follower without the label waits for good once the webhook has recorded its leader's downscale (§2.2).
    secondsBetween: (followers && prepared) || draw.chance(0.5) ? draw.of([60, 90, 180]) : 0,
    webhookServers: draw.of([1, 2, 2, 3]),
    skewMs: draw.of([0, 500, 5000, 120_000]),
    suspends: draw.chance(0.3),
    pageSize: draw.chance(0.2) ? draw.between(1, 3) : undefined,
    readyAfterMs: draw.of([300, 2000, 10_000]),
    exitAfterMs: draw.of([100, 1000, 8000]),
    gate: draw.chance(0.3) ? withoutEnd(drawGate(draw), prepared) : undefined,
    phased: draw.chance(0.3) ? drawPhased(draw) : undefined,
    certificate: draw.chance(0.25) ? drawCertificate(draw) : undefined,
    ignore: draw.chance(0.2),
    nodes: undefined,
    windows: undefined,
    deletions: undefined,
    mistakes: undefined,
    unreadable: undefined,
    incidents: undefined,
    evictions: undefined,
    downscales: undefined,
    answers: undefined,
    watches: undefined,
    firstCalls: undefined,
    faults: Object.fromEntries(FAULTS.map((fault) => [fault, level()])) as Shape["faults"],
    actions: draw.between(4, 24),
    bursts: drawBursts(draw, troubledMs),
    troubledMs,
  };
}

/** Pods and API servers tell whole seconds, and a clock that is right at first gets no worse by answers than that. */
const WHOLE_SECONDS_MS = 3000;
/** By how much a process may misjudge the API server's time at most: as long as it stood still before the last answer. */
export const MISJUDGED_MS = 45_000 + WHOLE_SECONDS_MS;
export const misjudgedMs = ({ skewMs }: Pick<Shape, "skewMs">): number =>
  Math.min(MISJUDGED_MS, skewMs + WHOLE_SECONDS_MS);

/** True if no call is lost or late, also by incidents or as it waits for others; hosts of nodes may have faults. */
export const isCalm = ({ faults, firstCalls, aim, answers, watches, incidents, callsPerSecond }: Shape): boolean =>
  (firstCalls ?? aim ?? answers ?? watches ?? incidents?.["leases"] ?? callsPerSecond) === undefined &&
  Object.values(faults).every((rate) => rate === 0);

function drawBursts(draw: Draw, troubledMs: number): readonly number[] {
  const bursts: number[] = [];
  for (let at = draw.between(2000, 30_000); at < troubledMs; at += draw.between(25_000, 90_000)) bursts.push(at);
  return bursts;
}

/** A webhook refuses downscales while another zone has outdated pods (§4.7d): for ever, if a gate holds that zone. */
const withoutEnd = (gate: GateShape, prepared: boolean): GateShape => (prepared ? { ...gate, last: "good" } : gate);

/** The zone's own time between its downscale and that of another zone. */
export const secondsBetweenOf = ({ minTimes, secondsBetween }: Shape, zone: string): number =>
  minTimes?.[zone] ?? secondsBetween;

/** A zone as its user wrote it. */
export function zoneObject(shape: Shape, name: string): Draft {
  const { zones, replicas, maxUnavailable, followers, mirrored, prepared } = shape;
  const { readyAfterMs, exitAfterMs, nodes, windows } = shape;
  const leader = zones[zones.indexOf(name) - 1];
  const secondsBetween = secondsBetweenOf(shape, name);
  const labels = { app: GROUP, name };
  return make("StatefulSet", name, {
    namespace: NAMESPACE,
    labels: {
      app: GROUP,
      "rollout-group": GROUP,
      ...(prepared && { "grafana.com/prepare-downscale": "true" }),
      ...(secondsBetween > 0 && { "grafana.com/min-time-between-zones-downscale": `${secondsBetween}s` }),
    },
    annotations: {
      "rollout-max-unavailable": String(maxUnavailable),
      ...(shape.accelerates && { "zonewise.dev/rollout-accelerate": "true" }),
      ...(windows && windowAnnotations(windows)),
      ...(followers && leader !== undefined && { "grafana.com/rollout-downscale-leader": leader }),
      ...(followers &&
        leader !== undefined &&
        shape.ordered && { "grafana.com/rollout-upscale-only-when-leader-ready": "true" }),
      ...(prepared && {
        "grafana.com/prepare-downscale-http-path": "prepare",
        "grafana.com/prepare-downscale-http-port": "80",
      }),
      ...(mirrored && {
        "grafana.com/rollout-mirror-replicas-from-resource-name": GROUP,
        "grafana.com/rollout-mirror-replicas-from-resource-kind": "ReplicaTemplate",
        "grafana.com/rollout-mirror-replicas-from-resource-api-version": "rollout-operator.grafana.com/v1",
      }),
      ...(mirrored?.delayMs && {
        "grafana.com/rollout-delayed-downscale": `${mirrored.delayMs / 1000}s`,
        "grafana.com/rollout-prepare-delayed-downscale-url": `http://pod/${DELAYED_PATH}`,
      }),
    },
    spec: {
      replicas,
      serviceName: name,
      selector: { matchLabels: labels },
      podManagementPolicy: shape.ordered ? "OrderedReady" : "Parallel",
      ...(shape.firstOrdinal !== undefined && { ordinals: { start: shape.firstOrdinal } }),
      updateStrategy: { type: "OnDelete" },
      template: {
        metadata: {
          labels: { ...labels, "rollout-group": GROUP },
          annotations: {
            "sim/ready-after-ms": String(readyAfterMs),
            "sim/exit-after-ms": String(exitAfterMs),
          },
        },
        spec: {
          containers: [{ name: "main", image: "app:1" }],
          ...(nodes && { nodeSelector: { [ZONE_LABEL]: name } }),
        },
      },
    },
  });
}

/** Where pods are told that they go later. */
export const DELAYED_PATH = "delayed";
export const TEMPLATES = "replicatemplates.rollout-operator.grafana.com";

/** What mirroring zones take their replicas from; an autoscaler owns it. */
export function templateObject({ replicas }: Shape): Draft {
  return make("ReplicaTemplate", GROUP, { namespace: NAMESPACE, spec: { replicas } });
}

/** For which a pod of another zone must have been ready, so that its budget lets its peer go. */
export const delayMs = ({ partitioned, evictions }: Pick<Shape, "partitioned" | "evictions">): number =>
  partitioned ? 1000 * (evictions?.delaySeconds ?? 0) : 0;

export function budgetObject({ budget, percent, partitioned, evictions }: Shape): Draft {
  return make("ZoneAwarePodDisruptionBudget", BUDGET, {
    namespace: NAMESPACE,
    spec: {
      ...(percent === undefined ? { maxUnavailable: budget } : { maxUnavailablePercentage: percent }),
      selector: { matchLabels: { app: GROUP } },
      ...(partitioned && { podNamePartitionRegex: "[a-z-]+-([0-9]+)" }),
      ...(delayMs({ partitioned, evictions }) > 0 && { crossZoneEvictionDelay: `${evictions?.delaySeconds}s` }),
    },
  });
}
