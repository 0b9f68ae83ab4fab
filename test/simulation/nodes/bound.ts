/** Pods of the zones that can run on the first nodes of their zone alone: by their affinity, their volume, or taints. */
import type { Draft } from "../../emulator/objects.ts";
import { NAMESPACE } from "../names.ts";

export interface Bound {
  readonly by: "affinity" | "volume" | "taint";
  /** On how many nodes of each zone they can run. */
  readonly nodes: number;
  /** The only zone of which that is so; those of the others can run on all of its nodes. */
  readonly zone?: string;
}

/** On how many nodes of a zone its pods can run. */
export const fittingIn = (zone: string, { bound, perZone }: { readonly bound?: Bound; readonly perZone: number }) =>
  bound && (bound.zone ?? zone) === zone ? bound.nodes : perZone;

/** Of the nodes on which they can run; the scheduler of the simulated cluster knows no more of it. */
export const POOL = "sim/pool";
const IN_POOL = { nodeSelectorTerms: [{ matchExpressions: [{ key: POOL, operator: "In", values: ["true"] }] }] };
/** The key of the taint of all other nodes; it says of none that it goes. */
export const OTHER = "sim/other";
const TAINT = { key: OTHER, value: "true", effect: "NoSchedule" };

/** What the pods of a zone have in their specs. */
export function needsOf({ by }: Bound, zone: string): object {
  if (by === "affinity")
    return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: IN_POOL } } };
  return by === "volume" ? { volumes: [{ name: "data", persistentVolumeClaim: { claimName: zone } }] } : {};
}

/** The claims of the zones, and their volumes. */
export function volumesOf(
  bound: Bound | undefined,
  zones: readonly string[],
): readonly (readonly [resource: string, object: Draft])[] {
  if (bound?.by !== "volume") return [];
  return zones.flatMap((name) => [
    [
      "persistentvolumes",
      {
        apiVersion: "v1",
        kind: "PersistentVolume",
        metadata: { name },
        spec: { nodeAffinity: { required: IN_POOL }, accessModes: ["ReadWriteMany"], capacity: { storage: "1Gi" } },
      },
    ],
    [
      "persistentvolumeclaims",
      {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        metadata: { name, namespace: NAMESPACE },
        spec: { volumeName: name, accessModes: ["ReadWriteMany"] },
      },
    ],
  ]);
}

/** The taints of a node that its kubelet registers with. */
export const taintsOf = (bound: Bound | undefined, isInPool: boolean): readonly object[] =>
  bound?.by === "taint" && !isInPool ? [TAINT] : [];
