/**
 * Judges what a RolloutGroup says of its zones whenever it is written (§11): its rows tell which version of each zone was
 * read, so that it is known what had to hold the rollout (§1.3, §1.12).
 *
 *   a row's zone is being deleted, has another update strategy or a status older than its spec   one such hold is told
 *   a zone is told to be deleted                                                                no zone is scaled meanwhile
 *   a zone is told to wait for a gate, a window or its own pods                                  no other zone lacks pods
 *   a window is told to hold a zone                                                              all its outdated pods are ready, and no
 *                                                                                                zone goes back to a template that was taken back
 */
import { dig, fieldsOf, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import type { Losses } from "./losses.ts";
import { GROUP, NAMESPACE, ROLLOUT_GROUPS, zoneOf } from "../names.ts";
import type { Caller } from "../network.ts";
import { createSince } from "./past.ts";
import type { ReadSafety } from "./reads.ts";
import { isEnding } from "./stored.ts";

export interface GroupClaimsOptions {
  readonly zones: readonly string[];
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly listPods: (zone: string) => readonly KubeObject[];
  readonly losses: Losses;
  readonly reads: Pick<ReadSafety, "listedAt">;
}

/** By the hold that comes first: each hides those after it. */
const HOLDS: readonly (readonly [reason: string, holds: (set: KubeObject, row: unknown) => boolean])[] = [
  ["UpdateStrategyNotOnDelete", (set) => dig(set, "spec", "updateStrategy", "type") !== "OnDelete"],
  ["ZoneTerminating", ({ metadata }) => metadata.deletionTimestamp !== undefined],
  ["StatusNotObserved", (_, row) => Number(dig(row, "observedGeneration")) < Number(dig(row, "generation"))],
];
/** The group was not decided about as its rows are. */
const UNDECIDED = new Set(["ReconcileFailed", "GroupChanged", "ScalingZone"]);
/** Hold a zone that could begin otherwise. */
const BEGINNINGS = new Set([
  "GateWaiting",
  "GateFailed",
  "GateInvalid",
  "GateUnreachable",
  "WindowClosed",
  "WindowInvalid",
  "MaxUnavailableReached",
]);
const WINDOWS = new Set(["WindowClosed", "WindowInvalid"]);
/** Its last lists may be those of later ticks. */
const LISTS = 4;
/** What a tick has found is written within this time. */
const TOLD_MS = 1000;

/** Calls `violated` with what happened, in words. */
export function createGroupClaims({ zones, violated, now, listPods, losses, reads }: GroupClaimsOptions) {
  /** By "zone generation" the zone in that version. */
  const versions = new Map<string, KubeObject>();
  /** The zones as they are, and since when they go back to the template that they had. */
  const sets = new Map<string, KubeObject>();
  const goingBack = createSince(now);

  function judge(group: KubeObject, actor: string): void {
    const blocks = listOf(dig(group, "status", "holds"));
    const told = [...blocks, ...listOf(dig(group, "status", "conditions"))].map(
      (one) => textOf(dig(one, "reason")) ?? "",
    );
    if (told.some((reason) => UNDECIDED.has(reason))) return;
    const rows = listOf(dig(group, "status", "zones"));
    for (const [i, [reason, holds]] of HOLDS.entries()) {
      const held = rows.find((row) => {
        const set = versions.get(`${String(dig(row, "name"))} ${String(dig(row, "generation"))}`);
        return set && holds(set, row);
      });
      const isTold = HOLDS.slice(0, i + 1).some(([one]) => told.includes(one));
      if (held !== undefined && !isTold)
        violated(
          `${actor} writes ${GROUP} with a row of ${String(dig(held, "name"))}, and not ${reason} but ${told.join()}`,
        );
    }
    if (blocks.length > 1 && blocks.some((block) => dig(block, "reason") === "ZoneTerminating"))
      violated(`${actor} writes that a zone is being deleted, and also what keeps zones from scaling: ${told.join()}`);
    for (const block of blocks) {
      judgeWindow(block, actor);
      judgeOthers(block, rows, actor);
    }
  }

  /** What lets a zone begin is asked only while each other one, paused or not, has all its pods. */
  function judgeOthers(block: unknown, rows: readonly unknown[], actor: string): void {
    const reason = textOf(dig(block, "reason")) ?? "";
    const zone = textOf(
      dig(
        listOf(dig(block, "objects")).find((one) => dig(one, "kind") === "StatefulSet"),
        "name",
      ),
    );
    const isShort = (row: unknown): boolean => Number(dig(row, "ready")) < Number(dig(row, "replicas"));
    const other = rows.find((row) => dig(row, "name") !== zone && isShort(row));
    if (zone !== undefined && other !== undefined && BEGINNINGS.has(reason))
      violated(`${actor} writes that ${zone} waits for ${reason}, while ${String(dig(other, "name"))} lacks pods`);
  }

  function judgeWindow(block: unknown, actor: string): void {
    const reason = textOf(dig(block, "reason")) ?? "";
    const zone = textOf(dig(listOf(dig(block, "objects"))[0], "name"));
    if (!WINDOWS.has(reason) || zone === undefined) return;
    // It is written while the next tick lists the zones, perhaps several times.
    const before = Math.min(reads.listedAt(actor, LISTS), now() - TOLD_MS);
    const ill = losses.find({ of: zone, losses: ["is outdated and not ready"], before });
    if (ill !== undefined) violated(`${actor} writes that ${zone} waits for ${reason}, although ${ill}`);
    const back = zones.find((one) => goingBack.before(one, before));
    if (back !== undefined) violated(`${actor} writes that ${zone} waits for ${reason}, while ${back} goes back`);
  }

  /** Its outdated pods are all of a template that was taken back before the zone was recorded with it. */
  function goesBack(zone: string): boolean {
    const set = sets.get(zone);
    const { currentRevision, updateRevision } = fieldsOf(dig(set, "status"));
    const isPaused = set?.metadata.annotations?.["grafana.com/rollout-paused"] !== undefined;
    const old = listPods(zone).filter(
      (pod) => !isEnding(pod) && pod.metadata.labels?.["controller-revision-hash"] !== updateRevision,
    );
    // Made a second later, to be sure: the times have whole seconds.
    const isOwn = ({ metadata }: KubeObject): boolean =>
      Date.parse(metadata.creationTimestamp) > Date.parse(set?.metadata.creationTimestamp ?? "");
    return set !== undefined && !isPaused && currentRevision === updateRevision && old.length > 0 && old.every(isOwn);
  }

  return {
    onEvent({ type, resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      const { name, namespace, generation = 0 } = object.metadata;
      if (namespace !== NAMESPACE) return;
      const zone = resource === "pods" ? zoneOf(name) : name;
      if ((resource === "pods" || resource === "statefulsets.apps") && zones.includes(zone)) {
        if (resource === "statefulsets.apps" && type === "DELETED") sets.delete(zone);
        else if (resource === "statefulsets.apps") sets.set(zone, object);
        goingBack.note(zone, goesBack(zone));
      }
      if (type === "DELETED") return;
      if (resource === "statefulsets.apps" && zones.includes(name)) versions.set(`${name} ${generation}`, object);
      const isWritten = JSON.stringify(object["status"]) !== JSON.stringify(previous?.["status"]);
      if (
        resource === ROLLOUT_GROUPS &&
        isWritten &&
        caller?.actor.startsWith("reconciler") &&
        dig(object, "status", "group") === GROUP
      )
        judge(object, caller.actor);
    },
  };
}
