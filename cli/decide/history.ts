/** The outcome of each revision of a zone, as far as its status and Events show it. Pure. */
import type { Event } from "../../infra/kubernetes/resources.ts";
import { isZoneRecorded, type ZoneWithPods } from "../../reconciler/model/zone.ts";
import type { Revision, ZoneHistory } from "./revisions.ts";

interface RevisionRow extends Omit<Revision, "patch"> {
  /** The pods that run it. */
  readonly pods: readonly string[];
  readonly outcome: string;
  /** Time of the Event that reports the outcome, RFC 3339. */
  readonly at?: string;
}

export interface ZoneHistoryRow {
  readonly zone: string;
  /** The newest first. */
  readonly revisions: readonly RevisionRow[];
}

interface Found {
  readonly zones: readonly ZoneWithPods[];
  readonly histories: readonly ZoneHistory[];
  readonly events: readonly Event[];
}

export function describeHistory({ zones, histories, events }: Found): ZoneHistoryRow[] {
  return zones.map((zone) => {
    const revisions = histories.find((one) => one.zone.uid === zone.uid)?.revisions ?? [];
    return { zone: zone.name, revisions: revisions.map((revision) => describeOne(revision, zone, events)) };
  });
}

function describeOne(
  { patch: _patch, ...revision }: Revision,
  zone: ZoneWithPods,
  events: readonly Event[],
): RevisionRow {
  const pods = zone.pods.filter((pod) => pod.revision === revision.name).map(({ name }) => name);
  const at = finishedAt(revision.name, events);
  const isLatest = revision.name === zone.status.updateRevision;
  const outcome = isLatest ? describeLatest(zone) : at === undefined ? "" : FINISHED;
  return { ...revision, pods, outcome, ...(at !== undefined && outcome === FINISHED && { at }) };
}

const FINISHED = "finished";

function describeLatest(zone: ZoneWithPods): string {
  const { replicas, status, observed, pods } = zone;
  if (!observed) return "the StatefulSet controller has not seen it yet";
  if (isZoneRecorded(zone) && status.updated >= replicas)
    return status.ready >= replicas ? FINISHED : `finished, ${status.ready} of ${replicas} pods are ready`;
  const updated = pods.filter((pod) => pod.revision === status.updateRevision);
  if (updated.length === 0) return "not started";
  const broken = updated.flatMap(({ health }) => health.fault ?? []);
  return `under way: ${updated.length} of ${replicas} pods${broken.length > 0 ? `, ${broken[0]}` : ""}`;
}

/** Time of the last Event that reports that a zone, or all zones, have the revision and are ready. */
function finishedAt(revision: string, events: readonly Event[]): string | undefined {
  const told = events.filter(
    ({ reason, message = "" }) =>
      (reason === "ZoneUpdated" || reason === "RolloutCompleted") && message.split(/[\s,]+/).includes(revision),
  );
  return told
    .flatMap(({ lastTimestamp }) => lastTimestamp ?? [])
    .toSorted()
    .at(-1);
}
