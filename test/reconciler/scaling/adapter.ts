/**
 * The one door to the scaling of a group: facts in, as the objects that a cluster has and the answers of its pods; out
 * what one tick does, and why zones wait. Whoever rewrites how they are read, decided and written has this file to
 * keep, and no case.
 */
import assert from "node:assert/strict";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { PodObject, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import { nameLease } from "../../../reconciler/downscale/act/downscale-lease.ts";
import type { Hold } from "../../../reconciler/model/decision.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { createReferences } from "../../../reconciler/scaling/act/gather-scaling.ts";
import { scaleGroup } from "../../../reconciler/scaling/act/scale-group.ts";
import { keepObjects, type Kept } from "../kept-objects.ts";

/** The replicas that a resource wants, and those that were written back to it. */
type Template = readonly [wanted: number, reported: number];

/** A pod that is to go answers that it was prepared so many minutes ago, or otherwise; or it does not answer. */
type PodAnswer = number | { readonly status?: number; readonly body: string } | undefined;

/** All objects are of one group. */
export interface Facts {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly statefulSets: readonly StatefulSet[];
  readonly pods: readonly PodObject[];
  /** The ReplicaTemplates that zones may mirror, by their names. */
  readonly templates?: Readonly<Record<string, Template>>;
  /** What they have become once pods were called, without those that are gone. */
  readonly templatesLater?: Readonly<Record<string, Template>>;
  readonly answers?: (pod: string) => PodAnswer | Promise<PodAnswer>;
  /** The entries of the zone tracker, by StatefulSet. */
  readonly tracker?: Readonly<Record<string, string>> | "unreadable";
  /** The downscales that the Lease of the group records, by StatefulSet. */
  readonly pending?: object;
  /** The StatefulSet or ReplicaTemplate whose changes the API server refuses. */
  readonly refused?: string;
}

interface Decision {
  /**
   * `keep a-0 a-1`, `prepare a-2`, `scale a to 2`, `write back 2`, in this order; of StatefulSets of the group
   * `ingester`.
   */
  readonly done: readonly string[];
  readonly holds: readonly Hold[];
  /** The `last-downscale` that was written with the replicas. */
  readonly recorded: string | undefined;
  /** The URLs of the pods that were told that they stay, and of those that are to go. */
  readonly called: readonly string[];
}

const TEMPLATES = { group: "rollout-operator.grafana.com", version: "v1", plural: "replicatemplates" };

const templatesOf = (templates: Facts["templates"] = {}): Kept[] =>
  Object.entries(templates).map(([name, [replicas, reported]]) => ({
    metadata: { name },
    spec: { replicas },
    status: { replicas: reported },
  }));

const letterOf = (name: string): string => name.replace("ingester-zone-", "");

/** One tick of a group. */
export async function scale(facts: Facts): Promise<Decision> {
  const { now, statefulSets, pods, tracker = {}, pending } = facts;
  const [{ metadata = {} } = {}] = statefulSets;
  const lease = nameLease(metadata.labels?.["rollout-group"], metadata.name ?? "");
  const note = {
    name: lease,
    resourceVersion: "1",
    annotations: { "zonewise/pending-downscales": JSON.stringify(pending) },
  };
  const { cluster, change } = keepObjects(
    {
      statefulsets: statefulSets,
      pods,
      replicatemplates: templatesOf(facts.templates),
      configmaps: tracker === "unreadable" ? [] : [{ metadata: { name: "tracker" }, data: tracker } as Kept],
      leases: pending ? [{ metadata: note }] : [],
    },
    { discovered: [TEMPLATES], failing: tracker === "unreadable" ? ["get configmaps"] : [] },
  );
  const done: string[] = [];
  const called: string[] = [];
  let recorded: string | undefined;
  let refusals = 0;
  const refuse = (): RolloutError =>
    ++refusals > 3 ? assert.fail("it is tried again and again") : new RolloutError("Forbidden", "denied");

  const observed: Cluster = {
    ...cluster,
    async change(resource, patch, call) {
      if (patch.name === facts.refused) throw refuse();
      const body = patch.body as { metadata: { annotations?: object }; spec: { replicas: number } };
      const { "grafana.com/last-downscale": time } = { ...body.metadata.annotations } as Record<string, string>;
      if (!patch.dryRun) done.push(`scale ${letterOf(patch.name)} to ${body.spec.replicas}`);
      recorded = time;
      return await cluster.change(resource, patch, call);
    },
    async patch(resource, patch, call) {
      if (patch.name === facts.refused) throw refuse();
      const { status } = patch.body as { status: { replicas: number } };
      done.push(`write back ${status.replicas}`);
      return await cluster.patch(resource, patch, call);
    },
  };
  const podHttp: PodHttp = {
    async send(_method, url) {
      const { hostname } = new URL(url);
      const [pod = ""] = hostname.split(".");
      if (done.at(-1)?.startsWith("prepare ")) done.push(`${done.pop()} ${letterOf(pod)}`);
      else done.push(`prepare ${letterOf(pod)}`);
      called.push(url);
      if (facts.templatesLater) change({ replicatemplates: templatesOf(facts.templatesLater) });
      const answer = await facts.answers?.(letterOf(pod));
      if (answer === undefined) throw new RolloutError("Timeout", "no answer");
      if (typeof answer === "object") return { status: 200, ...answer };
      return { status: 200, body: JSON.stringify({ timestamp: Math.round(now / 1000 - answer * 60) }) };
    },
  };
  const notifier = {
    async cancelPreparation(_zone: unknown, staying: Iterable<{ readonly pod: string; readonly url: string }>) {
      const all = [...staying];
      done.push(["keep", ...all.map(({ pod }) => letterOf(pod))].join(" "));
      called.push(...all.map(({ url }) => url));
    },
    idle: async () => {},
  };
  const zones = statefulSets.map(readZone);
  const { scalingHolds } = await scaleGroup(zones, {
    cluster: observed,
    clock: { now: () => now, monotonic: () => now, sleep: async () => {} },
    fence: { write: () => ({}) },
    stop: new AbortController().signal,
    references: createReferences(observed),
    podHttp,
    notifier,
    mayDownscale: async () => undefined,
    clusterDomain: "cluster.local.",
    zoneTracker: "tracker",
  });
  return { done, holds: scalingHolds, recorded, called };
}
