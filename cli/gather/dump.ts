/**
 * Reads the objects that decisions about a group are made from. An object that may not be read is left out, and
 * reported.
 */
import { hasCode, messageOf } from "../../infra/errors.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import {
  disruptionBudgets,
  phasedRollouts,
  rolloutGates,
  rolloutGroups,
} from "../../infra/kubernetes/custom-resources.ts";
import {
  controllerRevisions,
  events,
  type Event,
  leases,
  podDisruptionBudgets,
  pods,
  type Resource,
  statefulSets,
} from "../../infra/kubernetes/resources.ts";
import { fieldsOf } from "../../infra/json.ts";
import { nameOfGroup } from "../../reconciler/group-status/name.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { matchesSelector, type LabelSelector } from "../../reconciler/model/label-selector.ts";
import type { Labels, Zone } from "../../reconciler/model/zone.ts";
import type { KeptKind } from "../decide/redact.ts";
import type { Session } from "../session.ts";

/** The object as the API server sent it, with the kind, which a list leaves out. */
interface Found {
  readonly apiVersion: string;
  readonly kind: KeptKind;
}

export interface DumpedObjects {
  readonly objects: readonly Found[];
  /** The missing objects, with the reasons. */
  readonly unread: readonly string[];
}

interface Kind {
  readonly kind: KeptKind;
  readonly resource: Resource<object>;
}

const KINDS = {
  set: { kind: "StatefulSet", resource: statefulSets },
  pod: { kind: "Pod", resource: pods },
  revision: { kind: "ControllerRevision", resource: controllerRevisions },
  budget: { kind: "ZoneAwarePodDisruptionBudget", resource: disruptionBudgets },
  coreBudget: { kind: "PodDisruptionBudget", resource: podDisruptionBudgets },
  gate: { kind: "RolloutGate", resource: rolloutGates },
  phased: { kind: "PhasedRollout", resource: phasedRollouts },
  group: { kind: "RolloutGroup", resource: rolloutGroups },
  event: { kind: "Event", resource: events },
  lease: { kind: "Lease", resource: leases },
} as const satisfies Readonly<Record<string, Kind>>;

/** The group's objects in its namespace, in the order of the lists. Rejects if the StatefulSets cannot be read. */
export async function gatherDump(session: Session, group: string, zones: readonly Zone[]): Promise<DumpedObjects> {
  const { cluster } = session;
  const namespace = zones[0]?.namespace ?? session.namespace;
  const unread: string[] = [];
  const settings = await session.settings(namespace);

  async function list(
    { kind, resource }: Kind,
    isOurs: (object: unknown) => boolean,
    labelSelector?: string,
  ): Promise<readonly Found[]> {
    const query = { namespace, ...(labelSelector !== undefined && { labelSelector }) };
    const items = await collect<object>(cluster.list(resource, query)).catch((error: unknown) => {
      unread.push(`${resource.plural}: ${hasCode(error, "NotFound") ? "the kind is not defined" : messageOf(error)}`);
      return [];
    });
    return items.filter(isOurs).map((object) => withKind(object, { kind, resource }));
  }

  const names = new Set(zones.map(({ name }) => name));
  const uids = new Set(zones.map(({ uid }) => uid));
  const isOwned = (object: unknown): boolean =>
    (fieldsOf(fieldsOf(object)["metadata"])["ownerReferences"] as { uid?: string }[] | undefined)?.some(
      ({ uid = "" }) => uids.has(uid),
    ) === true;
  const specOf = (object: unknown) => fieldsOf(fieldsOf(object)["spec"]);
  const sets = (
    await collect<object>(cluster.list(statefulSets, { namespace, labelSelector: `${LABELS.rolloutGroup}=${group}` }))
  ).map((object) => withKind(object, KINDS.set));
  // A PodDisruptionBudget selects by the labels of pods; Zonewise's budget also by those of StatefulSets.
  const labels = sets.flatMap((set) =>
    [set, specOf(set)["template"]].map((one) => fieldsOf(fieldsOf(fieldsOf(one)["metadata"])["labels"]) as Labels),
  );
  const selects = (object: unknown): boolean =>
    labels.some((own) => matchesSelector(specOf(object)["selector"] as LabelSelector | undefined, own));
  const isAbout = (event: Event): boolean =>
    event.reportingComponent === "zonewise" &&
    [...names].some((name) => event.involvedObject.name === name || event.involvedObject.name?.startsWith(`${name}-`));
  const lists = await Promise.all([
    ...zones.flatMap(({ selector }) => [list(KINDS.pod, isOwned, selector), list(KINDS.revision, isOwned, selector)]),
    list(KINDS.budget, selects),
    list(KINDS.coreBudget, selects),
    list(KINDS.gate, (object) => specOf(object)["group"] === group),
    list(KINDS.phased, (object) => names.has(String(specOf(object)["targetRef"]))),
    list(KINDS.group, (object) => fieldsOf(fieldsOf(object)["metadata"])["name"] === nameOfGroup(group)),
    list(KINDS.event, (object) => isAbout(object as Event)),
    ...settings.homes.map(async (home) => {
      const lease = await cluster.get(leases, { namespace: home, name: settings.lease }).catch((error: unknown) => {
        if (!hasCode(error, "NotFound")) unread.push(`Lease ${settings.lease} in ${home}: ${messageOf(error)}`);
        return undefined;
      });
      return lease ? [withKind(lease, KINDS.lease)] : [];
    }),
  ]);
  return { objects: [...sets, ...lists.flat()], unread };
}

const withKind = (object: object, { kind, resource: { group, version } }: Kind): Found => ({
  ...object,
  apiVersion: group === "" ? version : `${group}/${version}`,
  kind,
});
