/** Builders of PhasedRollouts, their StatefulSets and pods: a test names only what matters to it. */
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { QueryAnswer } from "../../../infra/prometheus/answer.ts";
import { podObject, statefulSetObject, type PodTraits } from "../builders.ts";
import { checkHash, type Facts, HELD } from "./adapter.ts";

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
  return {
    apiVersion: "sts.plus/v1alpha1",
    kind: "PhasedRollout",
    metadata: {
      namespace: "test",
      name,
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
  };
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
  const base = statefulSetObject({ name: "db", replicas, ...(traits.terminating && { terminating: true }) });
  const isClaimed = !("owner" in traits) || traits.owner !== undefined;
  const guard = current === update ? replicas : HELD;
  const rollingUpdate =
    "partition" in traits && traits.partition === undefined ? {} : { partition: traits.partition ?? guard };
  return {
    ...base,
    metadata: {
      ...base.metadata,
      generation,
      uid: traits.uid ?? "uid-db",
      creationTimestamp: traits.createdAt ?? ago(86_400),
      labels: { ...traits.labels },
      annotations: { ...(isClaimed && { "sts.plus/phasedRollout": owner }), ...traits.annotations },
    },
    spec: {
      serviceName: "db",
      selector: { matchLabels: { name: "db" } },
      template: {},
      replicas,
      ...(traits.policy && { podManagementPolicy: traits.policy }),
      ...(traits.start !== undefined && { ordinals: { start: traits.start } }),
      updateStrategy: { type: strategy, ...(strategy === "RollingUpdate" && { rollingUpdate }) },
    },
    status: {
      observedGeneration: traits.observed === false ? generation - 1 : generation,
      replicas,
      readyReplicas: traits.available ?? replicas,
      availableReplicas: traits.available ?? replicas,
      updatedReplicas: traits.updated ?? (current === update ? replicas : 0),
      currentRevision: current,
      updateRevision: update,
    },
  };
}

const POD = /([.onxONX])([!-]?)/g;
const REVISIONS: Readonly<Record<string, string>> = { o: OLD, n: NEW, x: BROKEN_OFF };

/**
 * One letter a pod, in the order of their indexes: `o` old, `n` new, `x` of another revision; a capital letter for a
 * broken one, `!` after it for one that is not ready, `-` for one that is terminating; `.` for none.
 */
export function podsOf(text: string, start = 0): ReturnType<typeof podObject>[] {
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

export interface Scene extends RolloutTraits {
  readonly set?: SetTraits | null;
  /** See `podsOf`; all at the current revision by default. */
  readonly pods?: string;
  /** The pods from this index on are half an hour younger. */
  readonly younger?: number;
  readonly now?: number;
  readonly answer?: QueryAnswer;
  /** The PhasedRollout that the set names, if it is another one. */
  readonly other?: RolloutTraits;
}

export function factsOf({
  set = {},
  pods,
  younger = Infinity,
  now = NOW,
  answer,
  other,
  ...traits
}: Scene = {}): Facts {
  const statefulSet = set ? setObject({ ...(pods !== undefined && countsOf(pods, set.update)), ...set }) : undefined;
  const uid = statefulSet?.metadata?.uid ?? "";
  const text = pods ?? "o".repeat(set?.replicas ?? 3);
  const found = podsOf(text, set?.start ?? 0).map((pod, index) => ({
    ...pod,
    metadata: {
      ...pod.metadata,
      creationTimestamp: ago(index >= younger ? 1500 : 3600),
      ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid, controller: true }],
    },
  }));
  return {
    now,
    rollout: withCheckHash(rolloutObject(traits)),
    ...(other && { others: [rolloutObject(other)] }),
    statefulSet,
    pods: found,
    ...(answer && { answer }),
  };
}

/** What the status of the StatefulSet says where its pods are these: a pod that terminates still counts as available. */
function countsOf(text: string, update = OLD): Pick<SetTraits, "replicas" | "available" | "updated"> {
  const tokens = [...text.matchAll(POD)];
  const letters = tokens.map(([, letter = ""]) => letter);
  const isUp = ([, letter = "", mark]: RegExpExecArray): boolean => /[onx]/.test(letter) && mark !== "!";
  return {
    replicas: tokens.length,
    available: tokens.filter(isUp).length,
    updated: letters.filter((letter) => REVISIONS[letter.toLowerCase()] === update).length,
  };
}

/** The results of a stored step are of the present check, unless the test says which. */
function withCheckHash(rollout: CustomObject): CustomObject {
  const status = (rollout.status ?? {}) as { readonly rollingPodStatus?: object };
  const { rollingPodStatus: step } = status;
  if (!step || "checkHash" in step) return rollout;
  return { ...rollout, status: { ...status, rollingPodStatus: { ...step, checkHash: checkHash(rollout) } } };
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
