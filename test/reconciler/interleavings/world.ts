/**
 * A cluster as a value, for plays of every order: StatefulSets, pods, a budget and Leases behind the Kubernetes port. Each call takes effect
 * at one step; the API server's own part in an eviction, and the life of a pod after it, are steps as well.
 */
import type { Cluster, Preconditions } from "../../../infra/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { conflict, createServer, type Fields, type Life } from "./server.ts";
import type { Stepper } from "./stepper.ts";

/** What happens to a call. A late one takes effect after its caller has given up. */
export type Fate = "well" | "lostBefore" | "lostAfter" | "late" | "throttled" | "killed";

export interface WorldOptions {
  readonly stepper: Stepper;
  readonly zones: number;
  readonly replicas: number;
  /** Spec of the budget. */
  readonly spec: object;
  /** False for a CRD without a status. */
  readonly keepsStatus?: boolean;
  /** False for an API server that ignores the versions of budgets: to see that the plays find what it leads to. */
  readonly checksVersions?: boolean;
  readonly fate?: (actor: string) => Fate;
  /** Whether what is deleted comes back, step by step. */
  readonly revives: boolean;
}

export interface World {
  readonly pods: ReadonlyMap<string, Life>;
  /** The port, as this process uses it. */
  connect(actor: string): Cluster;
  /** Deletes the pod of this UID, as the API server does after an eviction was allowed. */
  evict(name: string, uid: string): void;
  /** The pod fails by itself, or recovers. */
  stumble(name: string): void;
  /** What must never happen, and did. */
  readonly violations: string[];
  readonly deleted: string[];
}

export function createWorld(options: WorldOptions): World {
  const { stepper, fate = () => "well" } = options;
  const spec = options.spec as { maxUnavailable?: number; podNamePartitionRegex?: string };
  // A configured 0 stops evictions, not the rollout, whose own limit is 1 here.
  const most = spec.maxUnavailable || 1;
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
        disrupted: false,
      });
  }
  let version = 1;
  const violations: string[] = [];
  const deleted: string[] = [];

  function remove(name: string, life: Life): void {
    if (life.state === "terminating" || life.state === "missing") return;
    const others = [...pods.entries()].filter(([other, { disrupted }]) => disrupted && other !== name);
    const isPeer = (other: Life): boolean => spec.podNamePartitionRegex === undefined || other.ordinal === life.ordinal;
    const elsewhere = others.filter(([, other]) => other.zone !== life.zone && isPeer(other));
    const here = others.filter(([, other]) => other.zone === life.zone);
    const names = (list: typeof others): string => list.map(([other]) => other).join(", ");
    if (elsewhere.length > 0) violations.push(`${name} deleted while ${names(elsewhere)} of another zone is down`);
    if (spec.podNamePartitionRegex === undefined && here.length >= most) violations.push(`${name} deleted while ${names(here)} is down`);
    deleted.push(name);
    Object.assign(life, { state: "terminating", disrupted: true, version: ++version });
    if (options.revives) void revive(name, life);
  }

  async function revive(name: string, life: Life): Promise<void> {
    await stepper.step(`${name} is gone`, "cluster");
    Object.assign(life, { state: "missing" });
    await stepper.step(`${name} is made`, "cluster");
    Object.assign(life, { state: "recovering", uid: `u${++version}`, version, revision: "new" });
    await stepper.step(`${name} is ready`, "cluster");
    Object.assign(life, { state: "ready", disrupted: false, version: ++version });
  }

  const server = createServer({ ...options, pods, zones, nextVersion: () => ++version });

  /** Deletes the pod if it is the one that was judged. */
  function removeIf(name: string, preconditions: Preconditions): string {
    const life = pods.get(name);
    if (!life || life.state === "missing") throw new RolloutError("NotFound", name);
    if (life.uid !== preconditions.uid || String(life.version) !== preconditions.resourceVersion) throw conflict(name);
    remove(name, life);
    return "";
  }

  function connect(actor: string): Cluster {
    async function call<T>(label: string, effect: () => T): Promise<T> {
      await stepper.step(label, actor);
      const what = fate(actor);
      if (what === "throttled") throw new RolloutError("Throttled", label);
      if (what === "lostBefore") throw new RolloutError("Timeout", label);
      if (what === "late") {
        void stepper.step(`${label}, late`, "network").then(() => {
          try {
            effect();
          } catch {}
        });
        throw new RolloutError("Timeout", label);
      }
      const result = effect();
      if (what === "lostAfter") throw new RolloutError("Timeout", label);
      if (what !== "killed") return result;
      stepper.kill(actor);
      return await new Promise<never>(() => {});
    }
    return {
      async *list(resource, query) {
        // Where nothing comes back, StatefulSets stay as they are: when they are read makes no difference.
        const unchanging = resource.plural === "statefulsets" && !options.revives;
        const items = unchanging
          ? server.list(resource.plural, "")
          : await call(`list ${resource.plural}`, () => server.list(resource.plural, query.labelSelector ?? ""));
        yield { items: items as never[], resourceVersion: "" };
      },
      get: async (resource, ref) =>
        (await call(`get ${resource.plural} ${ref.name}`, () => server.get(resource.plural, ref.name))) as never,
      create: async (resource, _, body) =>
        (await call(`create ${resource.plural}`, () => server.create(resource.plural, body as Fields))) as never,
      replace: async (resource, ref, body) =>
        (await call(`replace ${resource.plural} ${ref.name}`, () => server.replace(resource.plural, ref.name, body as Fields))) as never,
      patch: (resource, ref) => call(`patch ${resource.plural} ${ref.name}`, () => ""),
      remove: (_, ref, preconditions) => call(`delete ${ref.name}`, () => removeIf(ref.name, preconditions)),
      change: (_, ref) => Promise.reject(new RolloutError("NotFound", `nothing is scaled here, not ${ref.name}`)),
      discover: () => Promise.resolve([]),
      watch: () => Promise.reject(new RolloutError("Expired", "no watches here")),
    };
  }

  return {
    pods,
    connect,
    violations,
    deleted,
    evict: (name, uid) => {
      const life = pods.get(name);
      if (life?.uid === uid) remove(name, life);
    },
    stumble: (name) => {
      const life = pods.get(name);
      if (life?.state === "ready" && !life.disrupted) Object.assign(life, { state: "recovering", version: ++version });
      else if (life?.state === "recovering" && !life.disrupted) Object.assign(life, { state: "ready", version: ++version });
    },
  };
}
