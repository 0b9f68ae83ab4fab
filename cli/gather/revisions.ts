/** Reads the revisions of a StatefulSet. */
import { controllerRevisions } from "../../infra/kubernetes/resources.ts";
import { selectorText } from "../../reconciler/model/label-selector.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { readRevision, type Revision, type ZoneHistory } from "../decide/revisions.ts";
import type { Session } from "../session.ts";

/** The newest first. Rejects with the error of the API server. */
async function gatherRevisions(session: Pick<Session, "cluster">, zone: Zone): Promise<readonly Revision[]> {
  const query = { namespace: zone.namespace, labelSelector: selectorText(zone.selector) };
  const { items } = await readAll({ resource: controllerRevisions, query, read: (one) => one }, session);
  return items
    .filter(({ metadata }) => metadata?.ownerReferences?.some(({ uid }) => uid === zone.uid))
    .map(readRevision)
    .toSorted((a, b) => b.number - a.number);
}

export async function gatherHistories(
  session: Pick<Session, "cluster">,
  zones: readonly Zone[],
): Promise<readonly ZoneHistory[]> {
  return await Promise.all(zones.map(async (zone) => ({ zone, revisions: await gatherRevisions(session, zone) })));
}
