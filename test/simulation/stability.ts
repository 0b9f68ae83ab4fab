/** The second oracle: once faults and people have stopped, everything is settled, and then nothing is written. */
import { dig, isTrue } from "../emulator/objects.ts";
import type { Store, StoreEvent } from "../emulator/store.ts";
import { NAMESPACE, type Shape } from "./shape.ts";
import type { World } from "./world.ts";

/** What is not as it was asked for, in words. */
export function findUnsettled({ store, prepared }: World, shape: Shape): readonly string[] {
  return [
    ...shape.zones.flatMap((zone) => unsettledZone(store, zone)),
    ...(shape.followers ? shape.zones.slice(1).flatMap((zone, i) => unlikeLeader(store, zone, shape.zones[i])) : []),
    ...[...prepared].flatMap((uid) => {
      const pod = store.list("pods", NAMESPACE).find(({ metadata }) => metadata.uid === uid);
      return pod ? [`pod ${pod.metadata.name} was left prepared for its shutdown`] : [];
    }),
    ...store
      .list("zoneawarepoddisruptionbudgets.rollout-operator.grafana.com", NAMESPACE)
      .flatMap((budget) => Object.keys((dig(budget, "status", "disruptedPods") as object | undefined) ?? {}))
      .map((pod) => `a reservation of ${pod} is left`),
  ];
}

const replicasOf = (store: Store, zone = ""): unknown =>
  dig(store.get("statefulsets.apps", NAMESPACE, zone), "spec", "replicas");

function unlikeLeader(store: Store, zone: string, leader: string | undefined): string[] {
  const [own, wanted] = [replicasOf(store, zone), replicasOf(store, leader)];
  return own === wanted
    ? []
    : [`${zone} has ${String(own)} replicas, and ${leader}, which it follows, ${String(wanted)}`];
}

function unsettledZone(store: Store, zone: string): string[] {
  const set = store.get("statefulsets.apps", NAMESPACE, zone);
  if (!set) return [];
  const replicas = Number(dig(set, "spec", "replicas"));
  const revision = dig(set, "status", "updateRevision");
  const pods = store.list("pods", NAMESPACE).filter(({ metadata }) => metadata.labels?.["name"] === zone);
  return [
    ...(pods.length === replicas ? [] : [`${zone} has ${pods.length} pods instead of ${replicas}`]),
    ...(dig(set, "status", "currentRevision") === revision ? [] : [`${zone} keeps an old currentRevision`]),
    ...pods.flatMap((pod) => {
      const { name, labels } = pod.metadata;
      return [
        ...(labels?.["controller-revision-hash"] === revision ? [] : [`pod ${name} is outdated`]),
        ...(isTrue(pod, "Ready") ? [] : [`pod ${name} is not ready`]),
      ];
    }),
  ];
}

/** Writes that go on in a settled world: the reconcilers' Lease and Events, and what the status says of its own time. */
const GOES_ON = new Set(["leases.coordination.k8s.io", "events", "rolloutgroups.zonewise.dev"]);

/** True for a write that a settled world does not see. */
export const isUnrest = ({ resource, object }: StoreEvent): boolean =>
  object.metadata.namespace === NAMESPACE && !GOES_ON.has(resource);
