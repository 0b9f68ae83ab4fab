/** Reads the revisions of a StatefulSet. */
import { controllerRevisions } from "../../infra/kubernetes/resources.ts";
import { selectorText } from "../../reconciler/model/label-selector.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { gatherZonePods, readAll } from "../../reconciler/snapshot/gather.ts";
import {
  contradictsItself,
  mayGoBack,
  readRevision,
  type Revision,
  withCurrentOfPods,
  withLatestOfPods,
  type ZoneHistory,
} from "../decide/revisions.ts";
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

/** The same, each zone with the revision that its pods had before: pods are read where the status does not show it. */
export async function gatherForUndo(
  session: Pick<Session, "cluster">,
  zones: readonly Zone[],
): Promise<readonly ZoneHistory[]> {
  const histories = await gatherHistories(session, zones);
  const unclear = histories.filter(({ zone, revisions }) => contradictsItself(zone) || mayGoBack(zone, revisions));
  const read = await gatherZonePods(
    unclear.map(({ zone }) => zone),
    session,
  );
  return histories.map(({ zone, revisions }) => {
    const own = read.find(({ uid }) => uid === zone.uid);
    if (!own) return { zone, revisions };
    const seen = contradictsItself(zone) ? withCurrentOfPods(own, revisions) : withLatestOfPods(own);
    return { zone: seen, revisions };
  });
}
