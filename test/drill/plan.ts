/** The objects and stages of a drill, and their bounds: counts, times, rights. Pure. */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { make } from "../builders/objects.ts";

export const ZONES: readonly string[] = ["a", "b", "c"];
/** Pods of a zone, before and after the downscale. */
export const REPLICAS = 3;
export const REPLICAS_LEFT = 2;
/** The number of unavailable pods of a zone that the budget and the rollout allow. */
export const MAX_UNAVAILABLE = 1;

/** Label of all objects of a drill: the name of its run. */
export const LABEL = "zonewise/drill";
/** Annotation of all objects of a drill: the time after which their run counts as dead, RFC 3339. */
const EXPIRES = "zonewise/drill-expires";
/** Milliseconds that a run counts as alive without a renewal, and between two renewals. */
const EXPIRY_MS = 60_000;
export const RENEWAL_MS = 15_000;

/** The stages in their order, with the text at their begin, and the milliseconds that each may take. */
export const STAGES = {
  start: { says: "three zones of three pods start", limitMs: 180_000 },
  refusals: { says: "a pod of each zone goes in turn; pods of the other zones are asked for", limitMs: 120_000 },
  drains: { says: "two zones are drained at once", limitMs: 240_000 },
  rollout: { says: "all zones get a new template, while 2 clients evict pods that have it", limitMs: 300_000 },
  kept: { says: "a zone that must not shrink is scaled down", limitMs: 30_000 },
  downscale: { says: "zone a shrinks, and the others follow it", limitMs: 240_000 },
} as const satisfies Readonly<Record<string, { readonly says: string; readonly limitMs: number }>>;
export type StageName = keyof typeof STAGES;

/** Evictions: the number of clients, the evictions of each at most, and the milliseconds between two of a client. */
export const DURING_ROLLOUT = { clients: 2, tries: 40, pauseMs: 1500 } as const;
/** Evictions in other zones for each pod that is away. */
export const REFUSALS = { tries: 12, pauseMs: 100 } as const;
/** Evictions for each pod of a drain. */
export const DRAIN = { tries: 200, pauseMs: 1000 } as const;
/** Needs no shell, no network and no rights. */
export const PAUSE_IMAGE = "registry.k8s.io/pause:3.10.1";
/** The image of an installation has Node.js: this waits, and ends at once when it is told to. */
const WAIT = ["node", "-e", "process.on('SIGTERM', () => process.exit(0)); setInterval(() => {}, 1 << 30)"];

export interface Run {
  /** The name of the run: of its group and its budget. */
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  /** True for Zonewise's image, whose entry has to be replaced. */
  readonly isOwnImage: boolean;
  readonly nodeSelector: Readonly<Record<string, string>>;
}

/** `random` gives numbers from 0 up to 1. */
export const nameRun = (random: () => number): string =>
  `zonewise-drill-${Array.from({ length: 5 }, () => "bcdfghjklmnpqrstvwxz0123456789"[Math.floor(random() * 30)]).join("")}`;

/** True if a run may have this name: the same label key with another value belongs to somebody else. */
export const isRunName = (name: string): boolean => /^zonewise-drill-[a-z0-9]+$/.test(name);

export const setName = (run: string, zone: string): string => `${run}-zone-${zone}`;
/** Annotation of the pod template; the second template differs only in it. */
export const TEMPLATE = "zonewise/drill-template";

/** The label and the annotation of all that a run makes. */
export const marks = (run: string, now: number) => ({
  labels: { [LABEL]: run },
  annotations: { [EXPIRES]: formatTimestamp(now + EXPIRY_MS) },
});

/** The time from when on the object has no run, milliseconds since the epoch; Infinity without the annotation. */
export const expiryOf = (annotations: Readonly<Record<string, string>> = {}): number =>
  parseTimestamp(annotations[EXPIRES] ?? "") ?? Infinity;

export function buildBudget({ name, namespace }: Run, now: number) {
  return make("ZoneAwarePodDisruptionBudget", name, {
    namespace,
    metadata: { ...marks(name, now) },
    spec: { maxUnavailable: MAX_UNAVAILABLE, selector: { matchLabels: { [LABEL]: name } } },
  });
}

/** The StatefulSet of a zone. Zone a is the leader of b, and b of c; a must not shrink until the label is taken away. */
export function buildZone({ name: run, namespace, nodeSelector, ...run_ }: Run, zone: string, now: number) {
  const name = setName(run, zone);
  const leader = ZONES[ZONES.indexOf(zone) - 1];
  const { labels, annotations } = marks(run, now);
  return make("StatefulSet", name, {
    namespace,
    labels: { ...labels, "rollout-group": run, ...(!leader && { "grafana.com/no-downscale": "true" }) },
    annotations: {
      ...annotations,
      "rollout-max-unavailable": String(MAX_UNAVAILABLE),
      ...(leader && { "grafana.com/rollout-downscale-leader": setName(run, leader) }),
    },
    spec: {
      serviceName: run,
      replicas: REPLICAS,
      podManagementPolicy: "Parallel",
      updateStrategy: { type: "OnDelete" },
      selector: { matchLabels: { name } },
      template: {
        // The original finds the pods of a zone by the label `name`.
        metadata: { labels: { ...labels, name, "rollout-group": run }, annotations: { [TEMPLATE]: "1" } },
        spec: {
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          terminationGracePeriodSeconds: 5,
          nodeSelector,
          securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: "RuntimeDefault" } },
          containers: [
            {
              name: "pause",
              image: run_.image,
              ...(run_.isOwnImage && { command: WAIT }),
              resources: { requests: { cpu: "5m", memory: "32Mi" }, limits: { cpu: "100m", memory: "64Mi" } },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ["ALL"] },
              },
            },
          ],
        },
      },
    },
  });
}

interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
}

/** `verb group/resource[/subresource]`, the core group as "". */
function readRight(text: string): Right {
  const [verb = "", path = ""] = text.split(" ");
  const [group = "", resource = "", subresource] = path.split("/");
  return { verb, group, resource, ...(subresource !== undefined && { subresource }) };
}

export const describeRight = ({ verb, group, resource, subresource }: Right): string =>
  `${verb} ${resource}${subresource === undefined ? "" : `/${subresource}`}${group === "" ? "" : `.${group}`}`;

/** Rights in the namespace of the drill. docs/operate/drill.md has the same as rules. */
export const RIGHTS: readonly Right[] = [
  ...["create", "get", "list", "patch", "delete"].map((verb) => `${verb} apps/statefulsets`),
  "patch apps/statefulsets/scale",
  ...["list", "watch"].map((verb) => `${verb} /pods`),
  "create /pods/eviction",
  ...["create", "get", "list", "patch", "delete"].map(
    (verb) => `${verb} rollout-operator.grafana.com/zoneawarepoddisruptionbudgets`,
  ),
  ...["get", "delete"].map((verb) => `${verb} coordination.k8s.io/leases`),
].map(readRight);
