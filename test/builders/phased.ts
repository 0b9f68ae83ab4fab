/** PhasedRollouts, their StatefulSet and its pods, and what Prometheus answers. */
import type { CustomObject } from "../../infra/kubernetes/custom-resources.ts";
import type { PodObject, StatefulSet } from "../../infra/kubernetes/resources.ts";
import type { QueryAnswer } from "../../infra/prometheus/answer.ts";
import { HELD } from "../../reconciler/phased/target.ts";
import { make } from "./objects.ts";
import { podObject, type PodTraits, statefulSetObject } from "./zones.ts";

export const NOW = Date.parse("2026-03-01T12:00:00Z");
export const OLD = "db-old";
export const NEW = "db-new";
const BROKEN_OFF = "db-other";

export interface RolloutTraits {
  readonly name?: string;
  readonly spec?: object;
  readonly check?: object;
  readonly query?: object;
  readonly status?: object;
  readonly terminating?: boolean;
  readonly finalizers?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly generation?: number;
}

/** The object of a PhasedRollout of the StatefulSet `db`. */
export function rolloutObject({ name = "guard", spec, check, query, ...traits }: RolloutTraits = {}): CustomObject {
  return make("PhasedRollout", name, {
    namespace: "test",
    metadata: {
      uid: `uid-${name}`,
      resourceVersion: "1",
      generation: traits.generation ?? 1,
      finalizers: [...(traits.finalizers ?? ["sts.plus/finalizer"])],
      ...(traits.annotations && { annotations: { ...traits.annotations } }),
      ...(traits.terminating && { deletionTimestamp: "2026-03-01T11:59:00Z" }),
    },
    spec: {
      targetRef: "db",
      check: { query: { expr: "up == 0", url: "http://prom:9090", ...query }, ...check },
      ...spec,
    },
    ...(traits.status && { status: traits.status }),
  });
}

export interface SetTraits {
  readonly replicas?: number;
  /** Undefined leaves the field out. By default no pod is released. */
  readonly partition?: number | undefined;
  readonly start?: number;
  readonly current?: string;
  readonly update?: string;
  /** `status.availableReplicas`; all by default. */
  readonly available?: number;
  readonly updated?: number;
  readonly owner?: string | undefined;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly strategy?: string;
  readonly policy?: "OrderedReady" | "Parallel";
  readonly observed?: boolean;
  readonly terminating?: boolean;
  readonly uid?: string;
  readonly createdAt?: string;
  readonly generation?: number;
}

/** The StatefulSet `db`, claimed by `guard`. */
export function setObject(traits: SetTraits = {}): StatefulSet {
  const {
    replicas = 3,
    current = OLD,
    update = OLD,
    strategy = "RollingUpdate",
    generation = 2,
    owner = "guard",
  } = traits;
  const isClaimed = !("owner" in traits) || traits.owner !== undefined;
  const guard = current === update ? replicas : HELD;
  const rollingUpdate =
    "partition" in traits && traits.partition === undefined ? {} : { partition: traits.partition ?? guard };
  const base = statefulSetObject({
    name: "db",
    replicas,
    generation,
    observedGeneration: traits.observed === false ? generation - 1 : generation,
    start: traits.start,
    terminating: traits.terminating,
    createdAt: traits.createdAt ?? ago(86_400),
    available: traits.available,
    statusReady: traits.available,
    currentRevision: current,
    updateRevision: update,
    annotations: { ...(isClaimed && { "sts.plus/phasedRollout": owner }), ...traits.annotations },
    status: { updatedReplicas: traits.updated ?? (current === update ? replicas : 0) },
  });
  return {
    ...base,
    metadata: { ...base.metadata, uid: traits.uid ?? "uid-db", labels: { ...traits.labels } },
    spec: {
      ...base.spec,
      ...(traits.policy && { podManagementPolicy: traits.policy }),
      updateStrategy: { type: strategy, ...(strategy === "RollingUpdate" && { rollingUpdate }) },
    },
  } as StatefulSet;
}

export const POD = /([.onxONX])([!-]?)/g;
export const REVISIONS: Readonly<Record<string, string>> = { o: OLD, n: NEW, x: BROKEN_OFF };

/**
 * One letter a pod, in the order of their indexes: `o` old, `n` new, `x` of another revision; a capital letter for a
 * broken one, `!` after it for one that is not ready, `-` for one that is terminating; `.` for none.
 */
export function podsOf(text: string, start = 0): PodObject[] {
  return [...text.matchAll(POD)].flatMap(([, letter = "", mark], index) => {
    if (letter === ".") return [];
    const revision = REVISIONS[letter.toLowerCase()];
    const isBroken = letter !== letter.toLowerCase();
    const traits: PodTraits = {
      revision,
      ready: mark === "" && !isBroken,
      ...(isBroken && { broken: "CrashLoopBackOff" }),
      ...(mark === "-" && { terminating: true }),
    };
    return [podObject("db", start + index, traits)];
  });
}

export const empty: QueryAnswer = { kind: "Vector", samples: 0, warnings: [] };
export const data: QueryAnswer = { kind: "Vector", samples: 1, sample: "1", warnings: [] };
export const unreachable: QueryAnswer = { kind: "Error", code: "Unreachable", message: "no answer" };

export const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString().replace(".000", "");

/** The status of a rollout of `db` to NEW, at the step of `partition`. */
export function rolling(partition: number, step: object = {}, more: object = {}): object {
  const counters = { consecutiveSuccessfulChecks: 0, consecutiveFailedChecks: 0, totalFailedChecks: 0 };
  return {
    phase: "Rolling",
    targetUID: "uid-db",
    updateRevision: NEW,
    rolloutStartTime: ago(600),
    rollingPodStatus: { status: "WaitForPodToBeUpdated", partition, stepStartTime: ago(300), ...counters, ...step },
    ...more,
  };
}
