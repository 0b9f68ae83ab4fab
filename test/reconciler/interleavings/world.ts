/**
 * A cluster as a value, for plays of every order: StatefulSets, pods, a budget and Leases behind the Kubernetes port. Each call takes effect
 * at one step; the API server's own part in an eviction, and the life of a pod after it, are steps as well.
 */
import type { Cluster } from "../../../infra/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { DisruptionBudget, Lease, Pod, StatefulSet } from "../../../infra/resources.ts";
import { podObject, statefulSetObject } from "../builders.ts";
import { budgetObject } from "../budget/builders.ts";
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

interface Life {
  readonly zone: string;
  readonly ordinal: number;
  uid: string;
  version: number;
  state: "ready" | "recovering" | "terminating" | "missing";
  revision: string;
  /** It went by our doing, and its successor is not ready yet. */
  disrupted: boolean;
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

type Fields = { metadata?: { resourceVersion?: string } };

export function createWorld(options: WorldOptions): World {
  const { stepper, keepsStatus = true, checksVersions = true, fate = () => "well" } = options;
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
  let budget = budgetObject(options.spec) as DisruptionBudget;
  const leases = new Map<string, Lease>();
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

  const podObjects = (): Pod[] =>
    [...pods.entries()].flatMap(([name, life]) => {
      if (life.state === "missing") return [];
      const object = podObject(life.zone, life.ordinal, {
        ready: life.state === "ready",
        terminating: life.state === "terminating",
        revision: life.revision,
      });
      const labels = { ...object.metadata?.labels, name: life.zone, "rollout-group": "ingester" };
      return [{ ...object, metadata: { ...object.metadata, name, uid: life.uid, resourceVersion: String(life.version), labels } }];
    });

  const setObjects = (): StatefulSet[] =>
    zones.map((name) => {
      const own = [...pods.values()].filter(({ zone }) => zone === name);
      const there = own.filter(({ state }) => state !== "missing");
      return statefulSetObject({
        name,
        replicas: options.replicas,
        statusReplicas: there.length,
        statusReady: there.filter(({ state }) => state === "ready").length,
        at: "old",
        updateRevision: "new",
      });
    });

  const conflict = (what: string): RolloutError => new RolloutError("Conflict", `${what} has changed`);

  /** What the server does at the instant of a call. */
  const server = {
    list: (plural: string, selector: string): unknown[] => {
      if (plural === "zoneawarepoddisruptionbudgets") return [structuredClone(budget)];
      const set = /^name=(?<set>.*)$/.exec(selector)?.groups?.["set"];
      if (plural === "pods") return podObjects().filter((pod) => set === undefined || pod.metadata?.labels?.["name"] === set);
      return setObjects();
    },
    get: (plural: string, name: string): unknown => {
      const found =
        plural === "zoneawarepoddisruptionbudgets"
          ? budget
          : plural === "leases"
            ? leases.get(name)
            : podObjects().find((pod) => pod.metadata?.name === name);
      if (!found) throw new RolloutError("NotFound", `${plural} ${name}`);
      return structuredClone(found);
    },
    replace: (plural: string, name: string, body: Fields): unknown => {
      const current: Fields = plural === "leases" ? (leases.get(name) ?? {}) : budget;
      if (checksVersions && current.metadata?.resourceVersion !== body.metadata?.resourceVersion) throw conflict(name);
      const stored = { ...structuredClone(body), metadata: { ...body.metadata, resourceVersion: String(++version) } };
      if (plural === "leases") leases.set(name, stored);
      else if (keepsStatus) budget = stored;
      else version--;
      return structuredClone(plural === "leases" ? stored : budget);
    },
    create: (plural: string, body: Fields & { metadata?: { name?: string } }): unknown => {
      const name = body.metadata?.name ?? "";
      if (plural !== "leases" || leases.has(name)) throw new RolloutError("AlreadyExists", name);
      leases.set(name, { ...structuredClone(body), metadata: { ...body.metadata, resourceVersion: String(++version) } });
      return leases.get(name);
    },
    remove: (name: string, preconditions: { uid: string; resourceVersion?: string }): string => {
      const life = pods.get(name);
      if (!life || life.state === "missing") throw new RolloutError("NotFound", name);
      if (life.uid !== preconditions.uid || String(life.version) !== preconditions.resourceVersion) throw conflict(name);
      remove(name, life);
      return "";
    },
  };

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
      remove: (_, ref, preconditions) => call(`delete ${ref.name}`, () => server.remove(ref.name, preconditions)),
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
