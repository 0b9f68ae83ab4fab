/** Reads the revisions that a StatefulSet can go back to. */
import { controllerRevisions, type ControllerRevision } from "../../infra/kubernetes/resources.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import type { Session } from "../session.ts";

export interface EarlierTemplate {
  readonly revision: string;
  /**
   * A strategic merge patch of the StatefulSet:
   * https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#revision-history
   */
  readonly patch: object;
}

/**
 * While a zone rolls out, the revision that it had before; otherwise the one before the newest. Undefined if there is
 * none.
 */
export async function findEarlierTemplates(session: Session, zone: Zone): Promise<EarlierTemplate | undefined> {
  const query = { namespace: zone.namespace, labelSelector: zone.selector };
  const { items } = await readAll(
    { resource: controllerRevisions, query, read: (one: ControllerRevision) => one },
    session,
  );
  const own = items.filter(({ metadata }) => metadata?.ownerReferences?.some(({ uid }) => uid === zone.uid));
  const earlier = choose(own, zone);
  const patch = earlier?.data as object | undefined;
  return earlier && patch ? { revision: earlier.metadata?.name ?? "", patch } : undefined;
}

function choose(own: readonly ControllerRevision[], { status }: Zone): ControllerRevision | undefined {
  const { currentRevision, updateRevision } = status;
  const others = own.filter(({ metadata }) => metadata?.name !== updateRevision);
  if (currentRevision !== updateRevision) return others.find(({ metadata }) => metadata?.name === currentRevision);
  return others.toSorted((a, b) => b.revision - a.revision)[0];
}
