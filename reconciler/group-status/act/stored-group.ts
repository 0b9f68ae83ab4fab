/** A RolloutGroup as the cluster has it. */
import { rolloutGroups, type RolloutGroup } from "../../../infra/kubernetes/custom-resources.ts";
import type { ObjectMeta } from "../../../infra/kubernetes/resources.ts";
import type { RolloutGroupStatus } from "../status.ts";
import type { Zone } from "../../model/zone.ts";

export interface StoredGroup {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  /** Created by Zonewise: it is deleted with its group. An object that a user has created stays. */
  readonly isOurs: boolean;
  readonly owners: readonly Owner[];
  readonly deadlineMs: number;
  /** As it was read, or as we have sent it. */
  readonly status: Partial<RolloutGroupStatus>;
}

type Owner = NonNullable<ObjectMeta["ownerReferences"]>[number];

const MADE_BY = { "app.kubernetes.io/managed-by": "zonewise" } as const;
/** A pod of a large store may take long to become ready, but seldom half an hour. */
const DEADLINE_SECONDS = 1800;
export const DEFAULT_DEADLINE_MS = DEADLINE_SECONDS * 1000;

export function readStoredGroup({ metadata, spec, status }: RolloutGroup): StoredGroup {
  const { uid = "", resourceVersion = "", generation = 0, labels, ownerReferences = [] } = metadata;
  return {
    uid,
    resourceVersion,
    generation,
    isOurs: Object.entries(MADE_BY).every(([key, value]) => labels?.[key] === value),
    owners: ownerReferences,
    deadlineMs: (spec?.progressDeadlineSeconds ?? DEADLINE_SECONDS) * 1000,
    // The schema of the definition keeps it valid.
    status: status ?? {},
  };
}

const { group, version } = rolloutGroups;
export const GROUP_KIND = "RolloutGroup";
const TYPE = { apiVersion: `${group}/${version}`, kind: GROUP_KIND } as const;

/** A new object, which the garbage collector removes with the last of the zones. */
export function buildGroup(name: string, namespace: string, zones: readonly Zone[]): RolloutGroup {
  return { ...TYPE, metadata: { name, namespace, labels: MADE_BY, ownerReferences: ownersOf(zones) } };
}

const ownersOf = (zones: readonly Zone[]): Owner[] =>
  zones.map(({ name, uid }) => ({ apiVersion: "apps/v1", kind: "StatefulSet", name, uid }));

/** The owners that the object should have; undefined if it has them, or if a user created it. */
export function changeOwners({ isOurs, owners }: StoredGroup, zones: readonly Zone[]): Owner[] | undefined {
  const uids = new Set(zones.map(({ uid }) => uid));
  const others = owners.filter(({ kind }) => kind !== "StatefulSet");
  const isSame =
    owners.length - others.length === uids.size &&
    owners.every(({ kind, uid }) => kind !== "StatefulSet" || uids.has(uid));
  return !isOurs || isSame ? undefined : [...others, ...ownersOf(zones)];
}
