/** Revisions of a StatefulSet: what each ran, and which of them a zone goes back to. Pure. */
import type { ControllerRevision } from "../../infra/kubernetes/resources.ts";
import { isZoneRecorded, type Zone } from "../../reconciler/model/zone.ts";

/** A ControllerRevision. */
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

/** `app:2 (db-5f6)`; the name alone of a revision that is not there any more. */
export function describeRevision(name: string, revisions: readonly Revision[]): string {
  const images = revisions.find((one) => one.name === name)?.images ?? [];
  return images.length > 0 ? `${images.join(", ")} (${name})` : name;
}

/** How many pods of a zone lack its current revision: also those of a template between it and the latest. */
export const countOthers = ({ replicas, status }: Zone): number => Math.max(replicas - status.current, status.updated);

/** How far a zone is with its latest template. */
export type ZoneStage = "finished" | "under way" | "not begun";

/** By its status, which must have seen its latest spec. */
export function stageOf(zone: Zone): ZoneStage {
  const { replicas, status } = zone;
  if (isZoneRecorded(zone) || (status.updated >= replicas && status.ready >= replicas)) return "finished";
  return countOthers(zone) > 0 ? "under way" : "not begun";
}

/** What `undo` makes of a zone. */
export interface ZoneUndo {
  readonly zone: Zone;
  readonly stage: ZoneStage;
  /** The name of its latest revision. */
  readonly was: string;
  /** What it goes back to; undefined if it is left as it is. */
  readonly becomes: Revision | undefined;
}

/** Which zones go back, or why none may: half a group that goes back is worse than none. */
export type UndoPlan = { readonly zones: readonly ZoneUndo[] } | { readonly problem: string };

/**
 * Without `to`, the zones that are under way go back to the revision that they had before, and those that have not begun
 * lose the template that none of their pods has; finished ones are left as they are. With it (a
 * number, or a revision's name) they go to that revision: numbers are each zone's own, so that there is one zone then.
 */
export function planUndo(all: readonly ZoneHistory[], to: string | undefined): UndoPlan {
  const unseen = all.find(({ zone }) => !zone.observed)?.zone.name;
  if (unseen !== undefined)
    return { problem: `the StatefulSet controller has not seen the latest spec of ${unseen} yet` };
  const missing = all.find((one) => !isLeft(one, to) && !findTarget(one, to)?.patch);
  if (missing) return { problem: describeMissing(missing, to) };
  const zones = all.map((one): ZoneUndo => {
    const target = isLeft(one, to) ? undefined : findTarget(one, to);
    const was = one.zone.status.updateRevision;
    return { zone: one.zone, stage: stageOf(one.zone), was, becomes: target?.name === was ? undefined : target };
  });
  return { zones };
}

/** Nobody asked for a zone that is finished: its pods are healthy. */
const isLeft = ({ zone }: ZoneHistory, to: string | undefined): boolean =>
  to === undefined && stageOf(zone) === "finished";

function findTarget({ zone, revisions }: ZoneHistory, to: string | undefined): Revision | undefined {
  const { currentRevision } = zone.status;
  return revisions.find(({ name, number }) =>
    to === undefined ? name === currentRevision : name === to || String(number) === to,
  );
}

function describeMissing({ zone: { name }, revisions }: ZoneHistory, to: string | undefined): string {
  if (to === undefined) return `${name} has no earlier revision`;
  const known = revisions.map((one) => `${one.number}: ${describeRevision(one.name, revisions)}`).join("; ");
  return `${name} has no revision ${to} (it has ${known || "none"})`;
}
