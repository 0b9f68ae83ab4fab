/**
 * Revisions of a StatefulSet: the images of each, what came of it as far as its status and Events show it, and the
 * revision that a zone goes back to. Pure.
 */
import type { ControllerRevision, Event } from "../../infra/kubernetes/resources.ts";
import { isZoneRecorded, type Zone, type ZoneWithPods } from "../../reconciler/model/zone.ts";

export interface Revision {
  readonly name: string;
  /** Its number, as `kubectl rollout history` shows it; it grows when a template comes back. */
  readonly number: number;
  /** The images of its containers, each once. */
  readonly images: readonly string[];
  /** RFC 3339; "" if it is not known. */
  readonly createdAt: string;
  /**
   * A strategic merge patch of the StatefulSet:
   * https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#revision-history
   */
  readonly patch: object | undefined;
}

/** The parts of `data` that are read. */
interface Content {
  readonly spec?: {
    readonly template?: { readonly spec?: { readonly containers?: readonly { readonly image?: string }[] } };
  };
}

export function readRevision({ metadata, revision, data }: ControllerRevision): Revision {
  const containers = (data as Content | undefined)?.spec?.template?.spec?.containers ?? [];
  return {
    name: metadata?.name ?? "",
    number: revision,
    images: [...new Set(containers.flatMap(({ image }) => image ?? []))],
    createdAt: metadata?.creationTimestamp ?? "",
    patch: data as object | undefined,
  };
}

/** A zone with its revisions, the newest first. */
export interface ZoneHistory {
  readonly zone: Zone;
  readonly revisions: readonly Revision[];
}

/** `app:2 (db-5f6)`; only the name for a revision that no longer exists. */
export function describeRevision(name: string, revisions: readonly Revision[]): string {
  const images = revisions.find((one) => one.name === name)?.images ?? [];
  return images.length > 0 ? `${images.join(", ")} (${name})` : name;
}

/** True if its status says that its rollout is over, and counts pods that lack its revision. */
const contradictsItself = (zone: Zone): boolean => isZoneRecorded(zone) && zone.status.updated < zone.status.replicas;

/**
 * True of a StatefulSet that was created again over the pods of an earlier one: its status calls its first template the
 * current one, whatever these pods run.
 */
function isUnclear({ zone: { createdAt = "", ...zone }, revisions }: ZoneHistory): boolean {
  const { currentRevision, updateRevision, updated } = zone.status;
  const isOlder = (revision: string): boolean =>
    revisions.some((one) => one.name === revision && one.createdAt < createdAt);
  if (currentRevision !== updateRevision) return isOlder(updateRevision) && !isOlder(currentRevision);
  return updated < zone.replicas && !isOlder(currentRevision) && revisions.some(({ name }) => isOlder(name));
}

/** The number of pods of a zone that lack its current revision: also pods of a template between it and the latest. */
export const countOthers = ({ replicas, status }: Zone): number => Math.max(replicas - status.current, status.updated);

/** The progress of a zone with its latest template. */
type ZoneStage = "finished" | "going back" | "under way" | "not started";

/** Judges by the status, which must be of the latest spec. */
function stageOf(zone: Zone): ZoneStage {
  const { replicas, status } = zone;
  if (contradictsItself(zone)) return "going back";
  if (isZoneRecorded(zone) || (status.updated >= replicas && status.ready >= replicas)) return "finished";
  return countOthers(zone) > 0 ? "under way" : "not started";
}

/** The effect of `undo` on a zone. */
export interface ZoneUndo {
  readonly zone: Zone;
  readonly stage: ZoneStage;
  /** The name of its latest revision. */
  readonly was: string;
  /** The revision that it goes back to; undefined if it stays as it is. */
  readonly becomes: Revision | undefined;
}

/** The zones that go back, or the reason why none may: a group that goes back only in part is worse than none. */
type UndoPlan = { readonly zones: readonly ZoneUndo[] } | { readonly problem: string };

/**
 * Without `to`, zones that are under way go back to their previous revision, zones that have not begun lose the
 * template that none of their pods has, and zones that are finished or go back already stay as they are. With `to` (a number, or a revision's name)
 * they go to that revision: each zone numbers its own revisions, so that there is only one zone then.
 */
export function planUndo(all: readonly ZoneHistory[], to: string | undefined): UndoPlan {
  const unseen = all.find(({ zone }) => !zone.observed)?.zone.name;
  if (unseen !== undefined)
    return { problem: `the StatefulSet controller has not seen the latest spec of ${unseen} yet` };
  const unclear = to === undefined ? all.find(isUnclear) : undefined;
  if (unclear) return { problem: describeUnclear(unclear) };
  const missing = all.find((one) => !isLeft(one, to) && !findTarget(one, to)?.patch);
  if (missing) return { problem: describeMissing(missing, to) };
  const zones = all.map((one): ZoneUndo => {
    const target = isLeft(one, to) ? undefined : findTarget(one, to);
    const was = one.zone.status.updateRevision;
    return { zone: one.zone, stage: stageOf(one.zone), was, becomes: target?.name === was ? undefined : target };
  });
  return { zones };
}

/** A finished zone stays unless a revision is given: its pods are healthy. So does one that goes back already. */
const isLeft = ({ zone }: ZoneHistory, to: string | undefined): boolean =>
  to === undefined && ["finished", "going back"].includes(stageOf(zone));

function findTarget({ zone, revisions }: ZoneHistory, to: string | undefined): Revision | undefined {
  const { currentRevision } = zone.status;
  return revisions.find(({ name, number }) =>
    to === undefined ? name === currentRevision : name === to || String(number) === to,
  );
}

const describeUnclear = ({ zone: { name }, revisions }: ZoneHistory): string =>
  `${name} was created again, and its status does not say what its older pods run: take each zone back with --zone, and this one with --to-revision (it has ${listRevisions(revisions)})`;

const listRevisions = (revisions: readonly Revision[]): string =>
  revisions.map((one) => `${one.number}: ${describeRevision(one.name, revisions)}`).join("; ") || "none";

function describeMissing({ zone: { name }, revisions }: ZoneHistory, to: string | undefined): string {
  if (to === undefined) return `${name} has no earlier revision`;
  return `${name} has no revision ${to} (it has ${listRevisions(revisions)})`;
}

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
