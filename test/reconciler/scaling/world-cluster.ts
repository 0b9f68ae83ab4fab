/**
 * The world behind the Kubernetes port and behind HTTP to pods of one reconciler process: calls may fail in every way.
 */
import type { Cluster, Patch, Query, Ref, Removal } from "../../../infra/kubernetes/cluster.ts";
import { hasCode, RolloutError } from "../../../infra/errors.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import type { Lease, PodObject, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { podObject, selectedBeside, selects, statefulSetObject } from "../builders.ts";
import { lose, scaleTo, zoneNamed, type SimulatedZone, type World } from "./world.ts";

/** The outcome of a call. A late one takes effect after its caller has given up. */
export const FATES = ["well", "lostBefore", "lostAfter", "late", "refused", "leaseLost"] as const;
export type Fate = (typeof FATES)[number];

/** The number of times that all plays together reached each case. */
export type Reached = Record<
  "lostBefore" | "lostAfter" | "late" | "refused" | "leaseLost" | "killed" | "shrunk" | "shrinkUnanswered" | "deleted",
  number
>;

/** The process died. */
export class Killed extends Error {}

export interface Process {
  readonly cluster: Cluster;
  readonly podHttp: PodHttp;
  /** Throws `LeaseLost` once the Lease is lost. */
  readonly write: () => object;
  /** Makes late calls take effect. */
  readonly end: () => void;
}

type Fields = {
  metadata?: { resourceVersion?: string; annotations?: Record<string, string> };
  spec?: { replicas: number };
  status?: object;
};

/**
 * A process that dies after `callsToLive` calls; `fates` are those of its first calls in order; later calls succeed, a
 * downscale by `shrinkFate`.
 */
export function startProcess(
  world: World,
  options: { callsToLive: number; fates: readonly Fate[]; shrinkFate: Fate; reached: Reached },
): Process {
  const { fates, shrinkFate, reached } = options;
  let { callsToLive } = options;
  let calls = 0;
  let leaseLost = false;
  const late: (() => unknown)[] = [];

  /** The process may die before a call takes effect, or after it and before its answer. */
  async function call<T>(effect: () => T, isWrite = false, further: Fate = "well"): Promise<T> {
    const fate = fates[calls++] ?? further;
    if (--callsToLive < 0) die();
    if (fate === "leaseLost") leaseLost = true;
    if (fate === "lostBefore") fail("lostBefore", "Timeout");
    if (fate === "refused" && isWrite) fail("refused", "Forbidden");
    if (fate === "late" && isWrite) {
      late.push(effect);
      fail("late", "Timeout");
    }
    const result = effect();
    callsToLive -= 0.5;
    if (callsToLive < 0) die();
    if (fate === "lostAfter") fail("lostAfter", "Unreachable");
    return result;
  }

  function fail(fate: keyof Reached, code: "Timeout" | "Forbidden" | "Unreachable"): never {
    reached[fate]++;
    throw new RolloutError(code, fate);
  }

  function die(): never {
    reached.killed++;
    throw new Killed();
  }

  function listOf(items: unknown[]): { items: unknown[]; resourceVersion: string } {
    return { items: structuredClone(items), resourceVersion: String(world.version++) };
  }

  function changeZone({ name }: Ref, { metadata, spec, status }: Fields): SimulatedZone {
    const zone = zoneNamed(world, name);
    if (metadata?.resourceVersion !== String(zone.version)) throw new RolloutError("Conflict", "changed");
    if (spec) {
      if (spec.replicas < zone.replicas) reached.shrunk++;
      scaleTo(world, zone, spec.replicas);
      Object.assign(zone.annotations, metadata.annotations);
    }
    if (status) Object.assign(zone, { current: zone.status.update, version: zone.version + 1 });
    return zone;
  }

  function removePod({ name, preconditions: { uid, resourceVersion } }: Removal): string {
    const at = name.lastIndexOf("-");
    const zone = zoneNamed(world, name.slice(0, at));
    const pod = zone.pods.get(Number(name.slice(at + 1)));
    if (pod?.uid !== uid || String(pod.version) !== resourceVersion) throw new RolloutError("Conflict", "changed");
    reached.deleted++;
    lose(world, zone, Number(name.slice(at + 1)), pod);
    return "";
  }

  function getObject(plural: string): object {
    if (plural === "configmaps") throw new RolloutError("NotFound", "no tracker");
    if (plural !== "leases") return { spec: { replicas: world.reference }, status: {} };
    return structuredClone(world.lease) ?? absentLease();
  }

  function writeLease(body: Lease): Lease {
    if (world.lease?.metadata?.resourceVersion !== body.metadata?.resourceVersion)
      throw new RolloutError("Conflict", "changed");
    world.lease = {
      ...structuredClone(body),
      metadata: { ...body.metadata, resourceVersion: String(++world.version) },
    };
    return world.lease;
  }

  const cluster: Pick<Cluster, "get" | "create" | "replace" | "patch" | "change" | "discover" | "list" | "remove"> = {
    list: async function* ({ plural }: { readonly plural: string }, { labelSelector = "" }: Query) {
      if (plural === "statefulsets") yield await call(() => listOf(world.zones.map(asStatefulSet)));
      else yield await call(() => listOf(world.zones.flatMap(podsOf).filter(selects(labelSelector))));
    } as Cluster["list"],
    get: (async ({ plural }: { plural: string }) => call(() => getObject(plural))) as Cluster["get"],
    create: ((_resource: unknown, { body }: { body: Lease }) =>
      call(() => writeLease(body), true)) as Cluster["create"],
    replace: ((_resource: unknown, { body }: { body: Lease }) =>
      call(() => writeLease(body), true)) as Cluster["replace"],
    discover: () => call(() => [{ group: "g", version: "v1", plural: "replicatemplates" }]),
    patch: (resource, patch) =>
      call(() => (resource.plural === "statefulsets" ? (changeZone(patch, patch.body as Fields), "") : ""), true),
    change: (async (_resource: unknown, patch: Patch) => {
      const body = patch.body as Fields;
      const shrinks = (body.spec?.replicas ?? 0) < zoneNamed(world, patch.name).replicas;
      return await call(() => asStatefulSet(changeZone(patch, body)), true, shrinks ? shrinkFate : "well").catch(
        (error: unknown) => {
          if (shrinks && hasCode(error, "Timeout", "Unreachable")) reached.shrinkUnanswered++;
          throw error;
        },
      );
    }) as Cluster["change"],
    remove: (_resource, removal) => call(() => removePod(removal), true),
  };

  const podHttp: PodHttp = { send: (method, url) => call(() => answerOf(world, method, url)) };

  const write = (): object => {
    if (!leaseLost) return {};
    reached.leaseLost++;
    throw new RolloutError("LeaseLost", "another process has it");
  };

  function end(): void {
    for (const effect of late) {
      try {
        effect();
      } catch {}
    }
  }
  return { cluster: cluster as Cluster, podHttp, write, end };
}

function absentLease(): never {
  throw new RolloutError("NotFound", "no Lease");
}

/** A pod that answers by the world's `podMood`; some pods do not answer although they got the request. */
function answerOf(world: World, method: string, url: string): { status: number; body: string } {
  const { name = "", ordinal = "" } = /\/\/(?<name>.+zone-[a-c])-(?<ordinal>\d+)\./.exec(url)?.groups ?? {};
  const pod = zoneNamed(world, name).pods.get(Number(ordinal));
  const mood = (world.podMood * 7 + Number(ordinal) * 3) % 11;
  if (mood === 0 || !pod) throw new RolloutError("Unreachable", "refused");
  if (mood === 1) return { status: 500, body: "" };
  if (method === "DELETE") delete pod.preparedAt;
  else pod.preparedAt ??= world.now;
  if (mood === 2) throw new RolloutError("Timeout", "no answer, but it was heard");
  if (mood === 3) return { status: 200, body: "what?" };
  return { status: 200, body: JSON.stringify({ timestamp: Math.ceil((pod.preparedAt ?? 0) / 1000) }) };
}

function asStatefulSet({
  name,
  replicas,
  version,
  annotations,
  template,
  current,
  observed,
  status,
}: SimulatedZone): StatefulSet {
  const object = statefulSetObject({
    name,
    replicas,
    annotations: { ...annotations },
    selected: selectedBeside(name),
    labels: { "grafana.com/min-time-between-zones-downscale": "12h" },
    statusReplicas: status.replicas,
    statusReady: status.ready,
    currentRevision: `r${current}`,
    updateRevision: `r${observed ? template : status.update}`,
    generation: 2,
    observedGeneration: observed ? 2 : 1,
  });
  return {
    ...object,
    metadata: { ...object.metadata, resourceVersion: String(version) },
    status: { ...object.status, replicas: status.replicas, updatedReplicas: status.updated },
  };
}

function podsOf({ name, pods }: SimulatedZone): PodObject[] {
  return [...pods].map(([ordinal, { uid, version, revision, state }]) => {
    const ready = state === "ready" || state === "terminating";
    const traits = {
      revision: `r${revision}`,
      ready,
      terminating: state === "terminating",
      ...(state === "failed" && { restarts: 1 }),
    };
    const object = podObject(name, ordinal, traits);
    const labels = { ...object.metadata?.labels, ...selectedBeside(name) };
    return { ...object, metadata: { ...object.metadata, labels, uid, resourceVersion: String(version) } };
  });
}
