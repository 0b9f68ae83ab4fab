/**
 * A small cluster for plays of every order: StatefulSets, pods, a budget and Leases behind the Kubernetes port. Each
 * call takes effect at one step; the API server's own part in an eviction, and the recreation of a pod after it, are
 * steps as well.
 */
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { disruptionBudgets } from "../../../infra/kubernetes/custom-resources.ts";
import { leases } from "../../../infra/kubernetes/resources.ts";
import type { Pod } from "../../emulator/controllers/objects.ts";
import type { Draft } from "../../emulator/objects.ts";
import { budgetObject } from "../../builders/budgets.ts";
import { make } from "../../builders/objects.ts";
import { createSmallCluster, ordinalOf, ownerOf, type Life } from "../small-cluster.ts";
import { keyOf, type Deed } from "../store-port.ts";
import { connectPort, type Fate } from "./port.ts";
import type { Stepper } from "./stepper.ts";

/** Longer than a reservation lasts. */
const LONG_MS = 121_000;

const START = Date.parse("2026-01-01T00:00:00Z");
/** Longer than a kubelet's first report takes: what turns later than that was Ready in between. */
const UP_MS = 20_000;
const BUDGETS = keyOf(disruptionBudgets);
const LEASES = keyOf(leases);

/** For so long a pod that was Ready may recover (§1.4a). */
const RECOVERY_MS = 5 * 60_000;

/** How a pod fails and recovers by itself. */
const STUMBLES: Partial<Record<Life, "ready" | "failed" | "limping">> = {
  ready: "failed",
  failed: "limping",
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
  /** Of the pod of that name, if there is one. */
  uidOf(name: string): string | undefined;
  /** The port of this process. */
  connect(actor: string): Cluster;
  /** Deletes the pod with this UID, as the API server does after an allowed eviction. */
  evict(name: string, uid: string): void;
  /** Milliseconds since the play began. */
  now(): number;
  /** Changes when more time passes than a call or an eviction lasts. */
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
  const zones = Array.from({ length: options.zones }, (_, i) => `ingester-zone-${"abc".charAt(i)}`);
  const cluster = createSmallCluster(START);
  const { store } = cluster;
  for (const name of zones) {
    // Zone b alone has a selector of its own, so the group has two lists of pods: the later of two may be older.
    const selected = { "rollout-group": "ingester", ...(name.endsWith("-b") && { tier: "b" }) };
    cluster.addSet({ name, replicas: options.replicas, annotations: options.rollout ?? {}, selected });
  }
  cluster.settle();
  cluster.elapse(UP_MS);
  for (const name of zones) {
    cluster.changeTemplate(name, { image: "app:1" });
    cluster.sync(name);
  }
  // Something was reserved before: no Lease is looked at then, or it is there.
  const { keepsStatus = true } = options;
  const kept = store.create(BUDGETS, {
    ...budgetObject(spec),
    ...(keepsStatus && { status: { disruptedPods: {} } }),
  } as unknown as Draft);
  if (!keepsStatus)
    store.create(LEASES, make("Lease", `zonewise-budget-${kept.metadata.uid}`, { namespace: "test" }) as Draft);
  /** Pods that we removed, and whose successors are not ready yet. */
  const disrupted = new Set<string>();
  let now = 0;
  let epoch = 0;
  const violations: string[] = [];
  const deleted: string[] = [];

  /**
   * Judges the removal of a pod: by the rollout, by an eviction, or as a surplus one beyond the replicas, which its own
   * zone's limit does not count.
   */
  function lose(pod: Pod, by: "rollout" | "eviction" | "surplus"): void {
    const isSurplus = by === "surplus";
    const { name } = pod.metadata;
    const life = cluster.lifeOf(pod);
    if (life === "terminating") return;
    // No container of it has worked for so long that the rollout makes nothing unavailable by replacing it (§1.5.6).
    const turnedAt = pod.status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime ?? "";
    const isIdle = by === "rollout" && life === "failed" && START + now - Date.parse(turnedAt) >= RECOVERY_MS;
    const zone = ownerOf(name);
    const others = [...disrupted].filter((other) => other !== name);
    const isPeer = (other: string): boolean =>
      spec.podNamePartitionRegex === undefined || other.split("-").at(-1) === String(ordinalOf(pod));
    const elsewhere = others.filter((other) => ownerOf(other) !== zone && isPeer(other));
    const here = others.filter((other) => ownerOf(other) === zone);
    if (!isIdle && elsewhere.length > 0)
      violations.push(`${name} deleted while ${elsewhere.join(", ")} of another zone is down`);
    if (!isIdle && !isSurplus && spec.podNamePartitionRegex === undefined && here.length >= most)
      violations.push(`${name} deleted while ${here.join(", ")} is down`);
    deleted.push(name);
    disrupted.add(name);
    if (isSurplus) void vanish(name);
    else if (options.revives) void revive(name);
  }

  async function vanish(name: string): Promise<void> {
    await stepper.step(`${name} is gone`, "cluster");
    cluster.runOut(name);
    disrupted.delete(name);
  }

  async function revive(name: string): Promise<void> {
    await stepper.step(`${name} is gone`, "cluster");
    cluster.runOut(name);
    await stepper.step(`${name} is made`, "cluster");
    sync(ownerOf(name));
    await stepper.step(`${name} is ready`, "cluster");
    cluster.run(name);
    cluster.elapse(UP_MS);
    cluster.runOut(name);
    cluster.elapse(UP_MS);
    sync(ownerOf(name));
    disrupted.delete(name);
  }

  /** The StatefulSet controller, which deletes pods beyond the replicas. */
  function sync(zone: string): void {
    const before = cluster.podsOf(zone);
    cluster.sync(zone);
    for (const pod of before) if (ordinalOf(pod) >= (cluster.set(zone).spec.replicas ?? 0)) lose(pod, "surplus");
  }

  /** Stores the replicas; the controller deletes the pods beyond them at a step of its own. */
  async function shrink(zone: string, to: number): Promise<void> {
    cluster.change(zone, { replicas: Math.min(to, cluster.set(zone).spec.replicas ?? 0) });
    await stepper.step(`the controller deletes pods of ${zone}`, "cluster");
    sync(zone);
  }

  function judge<T>({ verb, plural, name }: Deed, effect: () => T): T {
    const pod = verb === "remove" && plural === "pods" ? cluster.pod(name) : undefined;
    const result = effect();
    // Evictions are those of the API server alone: a process that removes a pod is a reconciler.
    if (pod) lose(pod, "rollout");
    return result;
  }

  const reach = options.reach ?? (() => {});
  const port = { ...options, store, fate, reach, judge, unchanging: !options.revives, epoch: () => epoch };

  /** Enough time for every reservation to expire, and every call and eviction to be given up. */
  function elapse(): void {
    now += LONG_MS;
    epoch++;
  }

  return {
    uidOf: (name) => cluster.pod(name)?.metadata.uid,
    connect: (actor) => connectPort(actor, port),
    shrink,
    elapse,
    now: () => now,
    epoch: () => epoch,
    reach,
    violations,
    deleted,
    evict: (name, uid) => {
      const pod = cluster.pod(name);
      if (pod?.metadata.uid !== uid) return;
      cluster.remove(name);
      lose(pod, "eviction");
    },
    stumble: (name) => {
      const next = disrupted.has(name) ? undefined : STUMBLES[cluster.lifeOf(cluster.pod(name))];
      if (next) cluster.ail(name, next);
    },
  };
}
