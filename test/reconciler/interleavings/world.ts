/**
 * A cluster as a value, for plays of every order: StatefulSets, pods, a budget and Leases behind the Kubernetes port.
 * Each call takes effect at one step; the API server's own part in an eviction, and the recreation of a pod after it,
 * are steps as well.
 */
import type { Cluster, Preconditions } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { connectPort, type Fate } from "./port.ts";
import { conflict, createServer, type Life } from "./server.ts";
import type { Stepper } from "./stepper.ts";

/** Longer than a reservation lasts. */
const LONG_MS = 121_000;

/** How a pod fails and recovers by itself. */
const STUMBLES: Partial<Record<Life["state"], Life["state"]>> = {
  ready: "recovering",
  recovering: "limping",
  limping: "ready",
};

export interface WorldOptions {
  readonly stepper: Stepper;
  readonly zones: number;
  readonly replicas: number;
  /** Spec of the budget. */
  readonly spec: object;
  /** Annotations of the StatefulSets. */
  readonly rollout?: Readonly<Record<string, string>>;
  /** Whether the CRD has a status. */
  readonly keepsStatus?: boolean;
  /** False for an API server that ignores the versions of budgets, which proves that the plays find the violations. */
  readonly checksVersions?: boolean;
  readonly fate?: (actor: string) => Fate;
  /** Called with each case that a play reaches. */
  readonly reach?: (what: string) => void;
  /** Whether deleted pods are recreated, step by step. */
  readonly revives: boolean;
}

export interface World {
  readonly pods: ReadonlyMap<string, Life>;
  /** The port of this process. */
  connect(actor: string): Cluster;
  /** Deletes the pod with this UID, as the API server does after an allowed eviction. */
  evict(name: string, uid: string): void;
  /** Milliseconds since the play began. */
  now(): number;
  /** Changes when more time passes than a call, an eviction or a Lease lasts. */
  epoch(): number;
  elapse(): void;
  reach(what: string): void;
  /** The StatefulSet gets fewer replicas. */
  shrink(zone: string, to: number): Promise<void>;
  /** The pod fails by itself, with or without a container that still works, or recovers. */
  stumble(name: string): void;
  /** The violations that occurred. */
  readonly violations: string[];
  readonly deleted: string[];
}

export function createWorld(options: WorldOptions): World {
  const { stepper, fate = () => "well" } = options;
  const spec = options.spec as { maxUnavailable?: number; podNamePartitionRegex?: string };
  // A configured 0 stops evictions, but not the rollout, which has its own limit.
  const most = spec.maxUnavailable || Number(options.rollout?.["rollout-max-unavailable"] ?? 1);
  const pods = new Map<string, Life>();
  const zones = Array.from({ length: options.zones }, (_, i) => `ingester-zone-${"abc".charAt(i)}`);
  for (const zone of zones) {
    for (let ordinal = 0; ordinal < options.replicas; ordinal++)
      pods.set(`${zone}-${ordinal}`, {
        zone,
        ordinal,
        uid: `u-${zone}-${ordinal}`,
        version: 1,
        state: "ready",
        revision: "old",
        served: true,
        disrupted: false,
      });
  }
  let version = 1;
  let now = 0;
  let epoch = 0;
  const violations: string[] = [];
  const deleted: string[] = [];

  /** `isSurplus` for a pod beyond the replicas: its own zone's limit does not count it. */
  function remove(name: string, life: Life, isSurplus = false): void {
    if (life.state === "terminating" || life.state === "missing") return;
    const others = [...pods.entries()].filter(([other, { disrupted }]) => disrupted && other !== name);
    const isPeer = (other: Life): boolean => spec.podNamePartitionRegex === undefined || other.ordinal === life.ordinal;
    const elsewhere = others.filter(([, other]) => other.zone !== life.zone && isPeer(other));
    const here = others.filter(([, other]) => other.zone === life.zone);
    const names = (list: typeof others): string => list.map(([other]) => other).join(", ");
    if (elsewhere.length > 0) violations.push(`${name} deleted while ${names(elsewhere)} of another zone is down`);
    if (!isSurplus && spec.podNamePartitionRegex === undefined && here.length >= most)
      violations.push(`${name} deleted while ${names(here)} is down`);
    deleted.push(name);
    Object.assign(life, { state: "terminating", disrupted: true, version: ++version });
    if (isSurplus) void vanish(name, life);
    else if (options.revives) void revive(name, life);
  }

  async function vanish(name: string, life: Life): Promise<void> {
    await stepper.step(`${name} is gone`, "cluster");
    Object.assign(life, { state: "missing", disrupted: false });
  }

  async function revive(name: string, life: Life): Promise<void> {
    await stepper.step(`${name} is gone`, "cluster");
    Object.assign(life, { state: "missing" });
    await stepper.step(`${name} is made`, "cluster");
    Object.assign(life, { state: "recovering", uid: `u${++version}`, version, revision: "new", served: false });
    await stepper.step(`${name} is ready`, "cluster");
    Object.assign(life, { state: "ready", served: true, disrupted: false, version: ++version });
  }

  const shrunk = new Map<string, number>();
  const server = createServer({
    ...options,
    pods,
    zones,
    replicasOf: (zone) => shrunk.get(zone) ?? options.replicas,
    nextVersion: () => ++version,
  });

  /** Stores the replicas; the controller deletes the pods beyond them at a step of its own. */
  async function shrink(zone: string, to: number): Promise<void> {
    shrunk.set(zone, Math.min(to, shrunk.get(zone) ?? options.replicas));
    version++;
    await stepper.step(`the controller deletes pods of ${zone}`, "cluster");
    for (const [name, life] of pods) if (life.zone === zone && life.ordinal >= to) remove(name, life, true);
  }

  /** Deletes the pod if its UID is the judged one. */
  function removeIf(name: string, preconditions: Preconditions): string {
    const life = pods.get(name);
    if (!life || life.state === "missing") throw new RolloutError("NotFound", name);
    if (life.uid !== preconditions.uid || String(life.version) !== preconditions.resourceVersion) throw conflict(name);
    remove(name, life);
    return String(life.version);
  }

  const reach = options.reach ?? (() => {});
  const port = {
    stepper,
    server,
    fate,
    reach,
    remove: removeIf,
    unchanging: !options.revives,
    epoch: () => epoch,
    version: () => version,
  };

  /**
   * Enough time for every reservation to expire, every call and eviction to be given up, and every Lease to be lost.
   */
  function elapse(): void {
    now += LONG_MS;
    epoch++;
  }

  return {
    pods,
    connect: (actor) => connectPort(actor, port),
    shrink,
    elapse,
    now: () => now,
    epoch: () => epoch,
    reach,
    violations,
    deleted,
    evict: (name, uid) => {
      const life = pods.get(name);
      if (life?.uid === uid) remove(name, life);
    },
    stumble: (name) => {
      const life = pods.get(name);
      const next = life && !life.disrupted ? STUMBLES[life.state] : undefined;
      if (life && next) Object.assign(life, { state: next, version: ++version });
    },
  };
}
