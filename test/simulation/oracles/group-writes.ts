/**
 * Judges each RolloutGroup as it is written, by what it says itself and by what was written before (§11).
 *
 *   it is Ready                        its phase says so, and each row: all pods updated and ready, by the latest spec
 *   it becomes Ready                   the reconcile that says so has not failed
 *   one process writes it again        no row tells of an earlier version of its zone than before
 *   it is made anew                    no step of its progress is older than its zones
 *   it states a generation             the zones were listed after that was stored, and no row tells of an earlier zone
 *   a zone's spec, or its own, changes   it says so once a process has listed the zones, if nothing is lost
 *   its counts                         never go back
 *   it was made by somebody else       no reconciler deletes it
 */
import { isDeepStrictEqual } from "node:util";
import { dig, type Fields, fieldsOf, isTrue, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { LEASES, NAMESPACE, ROLLOUT_GROUPS } from "../names.ts";
import type { Caller } from "../network.ts";

export interface GroupWritesOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** True if what is read may be old: then a process does not know what was counted. */
  /** True while no call is lost, late or refused. */
  readonly isQuiet: () => boolean;
  readonly setOf: (zone: string) => KubeObject | undefined;
}

const SETS = "statefulsets.apps";
const ZONES = /\/statefulsets(?:\?(?!.*(?:watch|continue)=)|$)/;
/** Clocks and versions of one life tell nothing of the one before: a process may have read a zone so long ago. */
const LIFE_MS = 60_000;
/** A tick ends and its status is written within this time, at most once a second. */
const SAID_MS = 8000;
const LISTS = 4;

export function createGroupWrites({ violated, now, isQuiet, setOf }: GroupWritesOptions) {
  /** When each process sent its lists of StatefulSets that were answered, the last one first. */
  const lists = new Map<string, readonly number[]>();
  /** By name when the spec of a zone or of a group changed. */
  const changedAt = new Map<string, number>();
  const groups = new Map<string, KubeObject>();
  /** By process and UID of a zone the latest generation that it has told of under its Lease. */
  const told = new Map<string, Map<string, number>>();
  /** By "group generation" when that was stored. */
  const storedAt = new Map<string, number>();
  /** By "group generation" the zones as they were when that was stored. */
  const zonesAt = new Map<string, readonly KubeObject[]>();
  /** By UID who made it. */
  const makers = new Map<string, string>();

  function judgeReady(name: string, status: Fields, was: KubeObject | undefined, is: KubeObject): void {
    const isReady = isTrue(is, "Ready");
    if (isReady !== (status["phase"] === "Ready"))
      violated(`the RolloutGroup ${name} is ${String(status["phase"])}, and its condition Ready says otherwise`);
    if (!isReady) return;
    const row = listOf(status["zones"]).find((one) => !isWhole(fieldsOf(one)));
    if (row !== undefined) violated(`the RolloutGroup ${name} is Ready, and tells of ${JSON.stringify(row)}`);
    // A process may have judged a group Ready before it could make its object.
    const wasTold = listOf(dig(was, "status", "conditions")).length > 0;
    if (wasTold && was && !isTrue(was, "Ready") && dig(status["totals"], "failing") === true)
      violated(`the RolloutGroup ${name} becomes Ready by a reconcile that has failed`);
  }

  function judgeRows(name: string, status: Fields, actor: string): void {
    for (const row of listOf(status["zones"])) {
      const [zone, generation] = [String(dig(row, "name")), numberOf(dig(row, "generation")) ?? 0];
      const set = setOf(zone);
      if (!set || now() - Date.parse(set.metadata.creationTimestamp) < LIFE_MS) continue;
      const its = told.get(actor) ?? new Map<string, number>();
      const before = its.get(set.metadata.uid) ?? 0;
      if (generation < before)
        violated(`${actor} writes ${name} with ${zone} as of generation ${generation}, after ${before}`);
      told.set(actor, its.set(set.metadata.uid, Math.max(before, generation)));
    }
  }

  function judgeTotals(name: string, before: Fields, after: Fields): void {
    for (const count of ["reconciles", "failures", "podsReplaced", "timed"])
      if ((numberOf(after[count]) ?? 0) < (numberOf(before[count]) ?? 0))
        violated(
          `the RolloutGroup ${name} counts ${count} back, from ${String(before[count])} to ${String(after[count])}`,
        );
  }

  /** An object that belongs to earlier zones of these names is told of them, and the garbage collector removes it. */
  function judgeProgress({ metadata: { name, ownerReferences = [] } }: KubeObject, status: Fields): void {
    const owners = new Set(ownerReferences.map(({ uid }) => uid));
    const zones = listOf(status["zones"])
      .flatMap((row) => setOf(String(dig(row, "name"))) ?? [])
      .filter(({ metadata }) => owners.size === 0 || owners.has(metadata.uid));
    const madeAt = Math.min(...zones.map(({ metadata }) => Date.parse(metadata.creationTimestamp)));
    const steppedAt = Date.parse(textOf(dig(status["progress"], "lastStepTime")) ?? "");
    if (zones.length > 0 && steppedAt < madeAt - LIFE_MS)
      violated(`the RolloutGroup ${name} is made anew, and tells of a step long before its zones were made`);
  }

  function judgeGeneration({ metadata: { name, uid } }: KubeObject, status: Fields, actor: string): void {
    const generation = numberOf(status["observedGeneration"]) ?? 0;
    if ((storedAt.get(`${uid} ${generation}`) ?? 0) > (lists.get(actor)?.[0] ?? Infinity))
      violated(`${actor} writes that ${name} is as of generation ${generation}, and has listed the zones before that`);
    for (const { metadata } of zonesAt.get(`${uid} ${generation}`) ?? []) {
      const row = listOf(status["zones"]).find((one) => dig(one, "name") === metadata.name);
      const [is, was] = [numberOf(dig(row, "generation")) ?? Infinity, metadata.generation ?? 0];
      if (is < was && setOf(metadata.name)?.metadata.uid === metadata.uid)
        violated(
          `${actor} writes that ${name} is as of generation ${generation}, when ${metadata.name} had ${was}, and tells of ${is}`,
        );
    }
  }

  /** A process lists the zones again. */
  function judgeAge(group: KubeObject, actor: string): void {
    const { name, generation = 0 } = group.metadata;
    const isRead = (of: string): boolean =>
      (lists.get(actor) ?? []).some((at) => at > (changedAt.get(of) ?? Infinity) && now() - at > SAID_MS);
    const status = fieldsOf(group["status"]);
    if (isRead(name) && (numberOf(status["observedGeneration"]) ?? 0) < generation)
      violated(`${actor} knows generation ${generation} of ${name}, and says nothing of it`);
    for (const row of listOf(status["zones"])) {
      const zone = String(dig(row, "name"));
      const is = setOf(zone)?.metadata.generation ?? 0;
      if (isRead(zone) && (numberOf(dig(row, "generation")) ?? 0) < is)
        violated(`${actor} has listed ${zone} as of generation ${is}, and ${name} says nothing of it`);
    }
  }

  return {
    /** A request was answered, also by a refusal. */
    onAnswered({ actor, sentAt = 0 }: Caller, method: string, path: string, _: string, status: number): void {
      if (method !== "GET" || status !== 200 || !ZONES.test(path) || !actor.startsWith("reconciler-")) return;
      if (isQuiet()) for (const group of groups.values()) judgeAge(group, actor);
      lists.set(actor, [sentAt, ...(lists.get(actor) ?? [])].slice(0, LISTS));
    },

    onEvent({ type, resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      // What it has read before it gave its Lease back counts no more.
      if (resource === LEASES && holderOf(object) !== holderOf(previous))
        for (const its of [told, lists]) its.delete(caller?.actor ?? "");
      const isNew = object.metadata.generation !== previous?.metadata.generation;
      if ((resource === SETS || resource === ROLLOUT_GROUPS) && isNew) changedAt.set(object.metadata.name, now());
      if (resource !== ROLLOUT_GROUPS || object.metadata.namespace !== NAMESPACE) return;
      const { name, uid, generation } = object.metadata;
      if (type === "DELETED") groups.delete(name);
      else groups.set(name, object);
      const actor = caller?.actor ?? "";
      const isOurs = actor.startsWith("reconciler-");
      if (type === "ADDED") makers.set(uid, actor);
      if (type === "DELETED") {
        const maker = makers.get(uid) ?? "";
        if (isOurs && !maker.startsWith("reconciler-"))
          violated(`${actor} deletes the RolloutGroup ${name}, which ${maker} has made`);
        return;
      }
      // The spec of an object that a reconciler makes asks for nothing.
      if (!isOurs && generation !== previous?.metadata.generation) {
        storedAt.set(`${uid} ${String(generation)}`, now());
        const rows = listOf(dig(object, "status", "zones"));
        zonesAt.set(
          `${uid} ${String(generation)}`,
          rows.flatMap((row) => setOf(String(dig(row, "name"))) ?? []),
        );
      }
      const [before, after] = [fieldsOf(previous?.["status"]), fieldsOf(object["status"])];
      if (!isOurs || isDeepStrictEqual(after, before) || Object.keys(after).length === 0) return;
      judgeReady(name, after, previous, object);
      judgeRows(name, after, actor);
      judgeTotals(name, fieldsOf(before["totals"]), fieldsOf(after["totals"]));
      if (before["progress"] === undefined) judgeProgress(object, after);
      judgeGeneration(object, after, actor);
    },
  };
}

const holderOf = (lease: KubeObject | undefined): string => textOf(dig(lease, "spec", "holderIdentity")) ?? "";

/** What a row says of a zone with nothing left to do. */
const isWhole = ({
  replicas,
  updated,
  ready,
  generation,
  observedGeneration,
  currentRevision,
  updateRevision,
}: Fields) =>
  updated === replicas &&
  ready === replicas &&
  Number(observedGeneration) >= Number(generation) &&
  currentRevision === updateRevision;
