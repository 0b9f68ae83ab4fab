/**
 * The cluster of the eviction bench in a process of its own: rollout groups of three zones under a budget,
 * with pods of 8 kB. Without controllers only requests change objects. It prints its kubeconfig, and answers
 * each message with the figures since the last one.
 *
 *   eviction-cluster.ts '[{"name": "g0", "replicas": 100, "blocked": false}]'
 */
import { subscribe } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { parse } from "yaml";
import { startEmulator } from "../emulator/index.ts";
import type { Draft } from "../emulator/objects.ts";
import { podJson } from "./pod-list.ts";
import { add, pod, statefulSet } from "../builders/objects.ts";

export interface BenchGroup {
  readonly name: string;
  /** Pods per zone. */
  readonly replicas: number;
  /** Whether a pod of the last zone is not ready, so that no other zone may be disrupted. */
  readonly blocked: boolean;
}

export interface ClusterFigures {
  readonly calls: number;
  /** In both directions, with headers, before TLS. */
  readonly bytes: number;
  /** The maximum number of concurrent lists of pods with the same selector. */
  readonly listsAtOnce: number;
}

const CRD = new URL("../../infra/manifests/crds/zoneawarepoddisruptionbudgets.yaml", import.meta.url);
const NAMESPACE = "default";

const { store, kubeconfig } = await startEmulator({ controllers: false });
store.create("customresourcedefinitions.apiextensions.k8s.io", parse(readFileSync(CRD, "utf8")) as Draft);
for (const group of JSON.parse(process.argv[2] ?? "[]") as BenchGroup[]) createGroup(group);
countRequests();
console.log(JSON.stringify(kubeconfig()));

function createGroup({ name, replicas, blocked }: BenchGroup): void {
  const labels = { "rollout-group": name };
  for (const zone of ["a", "b", "c"].map((letter) => `${name}-zone-${letter}`)) {
    const ready = { replicas, readyReplicas: replicas, observedGeneration: 1 };
    const set = statefulSet(zone, replicas, { labels, status: ready });
    const { uid } = store.create("statefulsets.apps", set).metadata;
    for (let ordinal = 0; ordinal < replicas; ordinal++) {
      const { metadata, spec, status } = JSON.parse(podJson(ordinal)) as Record<"metadata" | "spec" | "status", object>;
      const isDown = blocked && zone.endsWith("-c") && ordinal === replicas - 1;
      const { uid: _uid, resourceVersion: _version, ...described } = metadata as Draft["metadata"];
      const place = { name: `${zone}-${ordinal}`, namespace: NAMESPACE, labels: { ...labels, name: zone } };
      const one = pod(place.name, {
        owner: { name: zone, uid },
        metadata: { ...described, ...place },
        spec,
        status: isDown ? { ...status, conditions: [{ type: "Ready", status: "False" }] } : status,
      });
      store.create("pods", one);
    }
  }
  add(store, "ZoneAwarePodDisruptionBudget", name, {
    namespace: NAMESPACE,
    spec: { maxUnavailable: replicas, selector: { matchLabels: labels } },
  });
}

function countRequests(): void {
  let figures = { calls: 0, listsAtOnce: 0 };
  let bytesBefore = 0;
  const sockets = new Set<Socket>();
  const lists = new Map<string, number>();
  const bytes = (): number =>
    [...sockets].reduce((sum, { bytesRead, bytesWritten }) => sum + bytesRead + bytesWritten, 0);
  const selectorOf = ({ method, url = "" }: IncomingMessage): string | undefined =>
    method === "GET" ? /\/pods\?.*labelSelector=(?<selector>[^&]*)/.exec(url)?.groups?.["selector"] : undefined;
  const change = (request: IncomingMessage, by: number): void => {
    const selector = selectorOf(request);
    if (selector === undefined) return;
    const now = (lists.get(selector) ?? 0) + by;
    lists.set(selector, now);
    figures = { ...figures, listsAtOnce: Math.max(figures.listsAtOnce, now) };
  };
  subscribe("http.server.request.start", (message) => {
    const { request } = message as { request: IncomingMessage };
    sockets.add(request.socket);
    figures = { ...figures, calls: figures.calls + 1 };
    change(request, 1);
  });
  subscribe("http.server.response.finish", (message) => change((message as { request: IncomingMessage }).request, -1));
  process.on("message", () => {
    const all = bytes();
    process.send?.({ ...figures, bytes: all - bytesBefore } satisfies ClusterFigures);
    bytesBefore = all;
    figures = { calls: 0, listsAtOnce: 0 };
  });
}
