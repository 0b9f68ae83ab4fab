/** The API server's state: StatefulSets and pods as they currently are, the budget and Leases as they were written. */
import { RolloutError } from "../../../infra/errors.ts";
import type { DisruptionBudget } from "../../../infra/kubernetes/custom-resources.ts";
import type { Lease, PodObject, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { podObject, selectedBeside, selects, statefulSetObject } from "../builders.ts";
import { budgetObject } from "../budget/builders.ts";

export interface Life {
  readonly zone: string;
  readonly ordinal: number;
  uid: string;
  version: number;
  /** A limping pod has one container that cannot start and one that works. */
  state: "ready" | "recovering" | "limping" | "terminating" | "missing";
  revision: string;
  /** It has been ready since it was made. */
  served: boolean;
  /** We removed it, and its successor is not ready yet. */
  disrupted: boolean;
}

export type Fields = { metadata?: { resourceVersion?: string } };

export interface ServerOptions {
  readonly pods: ReadonlyMap<string, Life>;
  readonly zones: readonly string[];
  readonly replicasOf: (zone: string) => number;
  /** Spec of the budget. */
  readonly spec: object;
  readonly rollout?: Readonly<Record<string, string>>;
  readonly keepsStatus?: boolean;
  readonly checksVersions?: boolean;
  readonly nextVersion: () => number;
}

export const conflict = (what: string): RolloutError => new RolloutError("Conflict", `${what} has changed`);

export function createServer(options: ServerOptions) {
  const { pods, zones, nextVersion, keepsStatus = true, checksVersions = true } = options;
  // Something was reserved before: no Lease is looked at then.
  const status = keepsStatus ? { status: { disruptedPods: {} } } : {};
  let budget = { ...budgetObject(options.spec), ...status } as DisruptionBudget;
  const leases = new Map<string, Lease>();

  const podObjects = (): PodObject[] =>
    [...pods.entries()].flatMap(([name, life]) => {
      if (life.state === "missing") return [];
      const object = podObject(life.zone, life.ordinal, {
        ready: life.state === "ready",
        terminating: life.state === "terminating",
        ...(life.state === "limping" && { broken: "CrashLoopBackOff", working: true }),
        ...(life.served && life.state !== "ready" && { restarts: 0 }),
        revision: life.revision,
      });
      const labels = { ...object.metadata?.labels, ...selectedBeside(life.zone), "rollout-group": "ingester" };
      return [
        {
          ...object,
          metadata: { ...object.metadata, name, uid: life.uid, resourceVersion: String(life.version), labels },
        },
      ];
    });

  const setObjects = (): StatefulSet[] =>
    zones.map((name) => {
      const own = [...pods.values()].filter(({ zone }) => zone === name);
      const there = own.filter(({ state }) => state !== "missing");
      return statefulSetObject({
        name,
        replicas: options.replicasOf(name),
        statusReplicas: there.length,
        statusReady: there.filter(({ state }) => state === "ready").length,
        at: "old",
        updateRevision: "new",
        annotations: options.rollout ?? {},
        selected: selectedBeside(name),
      });
    });

  return {
    list: (plural: string, selector: string): unknown[] => {
      if (plural === "zoneawarepoddisruptionbudgets") return [structuredClone(budget)];
      return plural === "pods" ? podObjects().filter(selects(selector)) : setObjects();
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
      const expected = body.metadata?.resourceVersion;
      // A Lease may be replaced without a version; a custom resource may not.
      const unconditional = plural === "leases" && expected === undefined;
      if (checksVersions && !unconditional && current.metadata?.resourceVersion !== expected) throw conflict(name);
      const stored = {
        ...structuredClone(body),
        metadata: { ...body.metadata, resourceVersion: String(nextVersion()) },
      };
      if (plural === "leases") leases.set(name, stored);
      else if (keepsStatus) budget = stored;
      return structuredClone(plural === "leases" ? stored : budget);
    },
    create: (plural: string, body: Fields & { metadata?: { name?: string } }): unknown => {
      const name = body.metadata?.name ?? "";
      if (plural !== "leases" || leases.has(name)) throw new RolloutError("AlreadyExists", name);
      leases.set(name, {
        ...structuredClone(body),
        metadata: { ...body.metadata, resourceVersion: String(nextVersion()) },
      });
      return leases.get(name);
    },
  };
}
