/**
 * Judges each RolloutGroup as it is written, by what it says itself and by what was written before (§11).
 *
 *   it is Ready                        its phase says so, and each row: all pods updated and ready, by the latest spec
 *   it becomes Ready                   the reconcile that says so has not failed
 *   one process writes it again        no row tells of an earlier version of its zone than before
 *   it is made anew                    no step of its progress is older than its zones
 *   it states a generation             the zones were listed after that was stored
 *   its counts                         never go back
 *   it was made by somebody else       no reconciler deletes it
 */
import { isDeepStrictEqual } from "node:util";
import { dig, type Fields, fieldsOf, isTrue, listOf, numberOf, textOf } from "../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../emulator/store.ts";
import { NAMESPACE } from "./names.ts";
import type { Caller } from "./network.ts";

export interface GroupWritesOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** True if what is read may be old: then a process does not know what was counted. */
  readonly mayBeStale: boolean;
  readonly setOf: (zone: string) => KubeObject | undefined;
}

const LEASES = "leases.coordination.k8s.io";
const GROUPS = "rolloutgroups.zonewise.dev";
const ZONES = /\/statefulsets(?:\?(?!.*(?:watch|continue)=)|$)/;
/** Clocks and versions of one life tell nothing of the one before: a process may have read a zone so long ago. */
const LIFE_MS = 60_000;

export function createGroupWrites({ violated, now, mayBeStale, setOf }: GroupWritesOptions) {
  /** When each process sent its last list of StatefulSets that was answered. */
  const listedAt = new Map<string, number>();
  /** By process and UID of a zone the latest generation that it has told of under its Lease. */
  const told = new Map<string, Map<string, number>>();
  /** By "group generation" when that was stored. */
  const storedAt = new Map<string, number>();
  /** By UID who made it. */
  const makers = new Map<string, string>();

  function judgeReady(name: string, status: Fields, was: KubeObject | undefined, is: KubeObject): void {
    const isReady = isTrue(is, "Ready");
    if (isReady !== (status["phase"] === "Ready"))
      violated(`the RolloutGroup ${name} is ${String(status["phase"])}, and its condition Ready says otherwise`);
    if (!isReady) return;
    const row = listOf(status["zones"]).find((one) => !isWhole(fieldsOf(one)));
    if (row !== undefined) violated(`the RolloutGroup ${name} is Ready, and tells of ${JSON.stringify(row)}`);
    if (!(was && isTrue(was, "Ready")) && dig(status["totals"], "failing") === true)
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

  function judgeProgress(name: string, status: Fields): void {
    const zones = listOf(status["zones"]).flatMap((row) => setOf(String(dig(row, "name"))) ?? []);
    const madeAt = Math.min(...zones.map(({ metadata }) => Date.parse(metadata.creationTimestamp)));
    const steppedAt = Date.parse(textOf(dig(status["progress"], "lastStepTime")) ?? "");
    if (zones.length > 0 && steppedAt < madeAt - LIFE_MS)
      violated(`the RolloutGroup ${name} is made anew, and tells of a step long before its zones were made`);
  }

  function judgeGeneration({ metadata: { name, uid } }: KubeObject, status: Fields, actor: string): void {
    const generation = numberOf(status["observedGeneration"]) ?? 0;
    if ((storedAt.get(`${uid} ${generation}`) ?? 0) > (listedAt.get(actor) ?? Infinity))
      violated(`${actor} writes that ${name} is as of generation ${generation}, and has listed the zones before that`);
  }

  return {
    /** A request was answered, also by a refusal. */
    onAnswered({ actor, sentAt = 0 }: Caller, method: string, path: string, _: string, status: number): void {
      if (method === "GET" && status === 200 && ZONES.test(path)) listedAt.set(actor, sentAt);
    },

    onEvent({ type, resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      // What it has read before it gave its Lease back counts no more.
      if (resource === LEASES && holderOf(object) !== holderOf(previous)) told.delete(caller?.actor ?? "");
      if (resource !== GROUPS || object.metadata.namespace !== NAMESPACE) return;
      const { name, uid, generation } = object.metadata;
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
      if (!isOurs && generation !== previous?.metadata.generation) storedAt.set(`${uid} ${String(generation)}`, now());
      const [before, after] = [fieldsOf(previous?.["status"]), fieldsOf(object["status"])];
      if (!isOurs || isDeepStrictEqual(after, before) || Object.keys(after).length === 0) return;
      judgeReady(name, after, previous, object);
      judgeRows(name, after, actor);
      if (!mayBeStale) judgeTotals(name, fieldsOf(before["totals"]), fieldsOf(after["totals"]));
      if (before["progress"] === undefined) judgeProgress(name, after);
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
