/**
 * `/admission/raise-partition`: keeps the partition of a StatefulSet that a PhasedRollout manages (§16.9). Only the
 * reconciler lowers it. If a write changes the template, the webhook raises the partition to the replicas in the same
 * write: otherwise pods from the partition on would be replaced before the reconciler has seen the write. On Kubernetes
 * 1.36 and later a policy does the same without a call. Fails open: the reconciler raises the partition as well.
 */
import * as z from "zod";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import { FIELD_MANAGER, HELD } from "../../reconciler/phased/target.ts";
import type { Answer, Webhook } from "../http/webhook.ts";
import { isDeepStrictEqual } from "node:util";

const SET = z.object({
  metadata: z.object({ name: z.string().nullish(), annotations: z.record(z.string(), z.string()).nullish() }).nullish(),
  spec: z.object({
    replicas: z.number().nullish(),
    template: z.unknown(),
    ordinals: z.object({ start: z.number().nullish() }).nullish(),
    updateStrategy: z
      .object({ type: z.string().nullish(), rollingUpdate: z.object({ partition: z.number().nullish() }).nullish() })
      .nullish(),
  }),
});

type StoredSet = z.infer<typeof SET>;

export function createRaisePartition(): Webhook {
  return {
    name: "raisePartition",
    paths: ["/admission/raise-partition"],
    handle: async ({ operation, object, oldObject, fieldManager }) => {
      const [now, before] = [SET.safeParse(object).data, SET.safeParse(oldObject).data];
      if (operation !== "UPDATE" || !now || !before || ownerOf(before) === undefined)
        return { allowed: true, reason: "NotManaged" };
      if (fieldManager === FIELD_MANAGER) return { allowed: true, reason: "Reconciler" };
      return judge(before, now);
    },
    onFault: () => ({ allowed: true, reason: "Fault" }),
  };
}

const ownerOf = ({ metadata }: StoredSet): string | undefined => metadata?.annotations?.[ANNOTATIONS.phasedRollout];

function judge(before: StoredSet, now: StoredSet): Answer {
  const [earlier, written] = [readFields(before), readFields(now)];
  const partition = keepPartition(earlier, written);
  if (partition === undefined) return { allowed: true, reason: "Guarded" };
  const patch = [...patchPartition(now, partition), ...patchClaim(before, now)];
  if (written.partition >= earlier.partition) return { allowed: true, reason: "Raised", patch };
  return { allowed: true, reason: "Kept", patch, warnings: [warn(before, { partition, written: written.partition })] };
}

function readFields({ spec: { replicas, template, ordinals, updateStrategy } }: StoredSet): ReleaseFields {
  return {
    template,
    replicas: replicas ?? 1,
    firstOrdinal: ordinals?.start ?? 0,
    rolls: (updateStrategy?.type ?? "RollingUpdate") === "RollingUpdate",
    partition: updateStrategy?.rollingUpdate?.partition ?? 0,
  };
}

function patchPartition({ spec }: StoredSet, value: number): object[] {
  if (spec.updateStrategy?.rollingUpdate)
    return [{ op: "add", path: "/spec/updateStrategy/rollingUpdate/partition", value }];
  return [
    { op: "add", path: "/spec/updateStrategy", value: { type: "RollingUpdate", rollingUpdate: { partition: value } } },
  ];
}

const CLAIM = [ANNOTATIONS.phasedRollout, ANNOTATIONS.originalPartition];

/**
 * Replacing the object by a manifest drops the claim together with the partition: the next write would find nothing to
 * keep.
 */
function patchClaim(before: StoredSet, { metadata }: StoredSet): object[] {
  const [kept, written] = [before.metadata?.annotations ?? {}, metadata?.annotations];
  const lost = CLAIM.filter((name) => kept[name] !== undefined && kept[name] !== written?.[name]);
  if (lost.length === 0) return [];
  const value = { ...written, ...Object.fromEntries(lost.map((name) => [name, kept[name]])) };
  return [{ op: "add", path: "/metadata/annotations", value }];
}

function warn(
  before: StoredSet,
  { partition, written }: { readonly partition: number; readonly written: number },
): string {
  const owner = ownerOf(before);
  const set = before.metadata?.name ?? "";
  return (
    `the partition of StatefulSet ${set} is ${partition} instead of ${written}: PhasedRollout ${owner} releases its pods. ` +
    `spec.skipCheck of ${owner} ends the checks; without a reconciler, remove the annotation ${ANNOTATIONS.phasedRollout} first`
  );
}

/** The fields of a StatefulSet that say which of its pods get the latest template. */
export interface ReleaseFields {
  readonly template: unknown;
  readonly replicas: number;
  /** `spec.ordinals.start`: the partition counts from it. */
  readonly firstOrdinal: number;
  /** Its update strategy is RollingUpdate. */
  readonly rolls: boolean;
  /** 0 if it has none. */
  readonly partition: number;
}

/**
 * The partition to set instead of the written one; undefined if the written one releases no pod that was held before,
 * and no new pod.
 */
export function keepPartition(before: ReleaseFields, after: ReleaseFields): number | undefined {
  if (!after.rolls) return undefined;
  const least = isAnotherRollout(before, after) || opensToNewPods(before, after) ? HELD : before.partition;
  return after.partition < least ? least : undefined;
}

/** Pods that the write adds would get the latest template. With partition 0 all pods have it. */
function opensToNewPods({ partition, replicas }: ReleaseFields, after: ReleaseFields): boolean {
  return partition > 0 && partition < after.replicas && replicas < after.replicas;
}

/** The partition from before says nothing about these pods and this template. */
function isAnotherRollout(before: ReleaseFields, after: ReleaseFields): boolean {
  return (
    !before.rolls || before.firstOrdinal !== after.firstOrdinal || !isDeepStrictEqual(before.template, after.template)
  );
}
