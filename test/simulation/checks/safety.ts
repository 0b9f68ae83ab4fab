/**
 * The oracle of checks, from the store's history and Prometheus' answers alone. It shares no rule with the product.
 *
 * A zone that nothing of a new template has reached begins only after the gate's check has succeeded often enough in a
 * row for this template, unless a person's bypass of the gate lasts. The reconciler lowers a partition to release one pod,
 * after as many successes since the pod before, while all pods are there.
 */
import { dig, fieldsOf, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { GROUP, NAMESPACE, ordinalOf, zoneOf } from "../names.ts";
import type { Caller } from "../network.ts";
import { misjudgedMs, type Shape } from "../shape.ts";
import { isReady } from "../oracles/stored.ts";
import { type CheckShape, GATE, GATES, PHASED, PHASED_ROLLOUTS } from "./objects.ts";
import { claimOf, isCrashing } from "./phased-set.ts";
import type { Told, Verdict } from "./prometheus.ts";

export interface CheckSafetyOptions {
  readonly shape: Shape;
  readonly violated: (what: string) => void;
  readonly listPods: (set: string) => readonly KubeObject[];
  readonly now: () => number;
  /** How many milliseconds ago what this actor does now may have been decided. */
  readonly decidedMs: (actor: string) => number;
}

export interface CheckSafety {
  readonly onEvent: (event: StoreEvent, caller: Caller | undefined) => void;
  readonly onAnswer: (told: Told) => void;
}

const BYPASS = "zonewise.dev/bypass-gates-until";
/** So far ahead at most a bypass may end as it is written; one that ends later never counts. */
const MAX_BYPASS_MS = 24 * 3_600_000;
/** So long ago at most was decided what takes effect now: a process stands still, and a call is on its way. */
const DECIDED_MS = 150_000;
/** Gates are read so long before the zones at most: a step that takes longer reads them again. */
const GATES_MS = 15_000;
/** A check that is not answered any more counts for so long, or for two periods. */
const KEPT_MS = 60_000;

export function createCheckSafety({ shape, violated, listPods, now, decidedMs }: CheckSafetyOptions): CheckSafety {
  /** The bypass of each zone's gates as it is written, and until when this or an earlier one may have counted. */
  const bypasses = new Map<string, { readonly written: string | undefined; readonly to: number }>();
  /** The gate and the PhasedRollout as they are, and since when their spec is what it is. */
  const specs = new Map<string, { readonly object: KubeObject; readonly since: number }>();
  /** Revisions that all pods of a zone have had: a way back is not gated. */
  const ran = new Map<string, Set<string>>();
  /** The templates of all zones, newest last. */
  const templates: { readonly id: string; readonly at: number }[] = [];
  const updateRevisions = new Map<string, string>();
  /** Since when no pod of a zone has its template. */
  const outdatedSince = new Map<string, number>();
  const known = new Set<string>();
  /** The revisions of the zones when the group was last settled, and of the group as it is, if that is settled. */
  const settled = new Map<string, string>();
  let settling: readonly (readonly [string, string])[] = [];
  let settledSince: number | undefined;
  /** UIDs of the pods that stood when the StatefulSet of the PhasedRollout was made: no way back is theirs. */
  let foreign: ReadonlySet<string> = new Set();
  let releasedAt = 0;
  let sickSince: number | undefined;

  /** By the name of a check all answers to it. */
  const answers = new Map<string, Told[]>();

  /** True if the check had succeeded often enough in a row at a time from which this may have been decided. */
  function hasPassed(
    check: CheckShape,
    expr: string,
    since: number,
    { errors = "Error", decided = DECIDED_MS }: { readonly errors?: Verdict; readonly decided?: number } = {},
  ): boolean {
    const told = (answers.get(nameOf(expr)) ?? []).filter(({ at }) => at >= since);
    const keptMs = Math.max(KEPT_MS, 2 * check.periodSeconds * 1000);
    let row = 0;
    return told.some(({ at, verdict }, i) => {
      row = verdict === "Success" || (verdict === "Error" && errors === "Success") ? row + 1 : 0;
      const until = Math.min(told[i + 1]?.at ?? Infinity, at + keptMs);
      return row >= check.successThreshold && until >= now() - decided;
    });
  }

  /** Since when the zones have the templates that they have; a change that was taken back at once is none. */
  function templatesSince(): number {
    const last = templates.at(-1);
    const other = templates.findLastIndex(
      ({ id }, i) => id !== last?.id && (templates[i + 1]?.at ?? Infinity) - (templates[i]?.at ?? 0) > KEPT_MS,
    );
    const first = templates.slice(other + 1).find(({ id }) => id === last?.id);
    return Math.min(first?.at ?? 0, now());
  }

  function onZonePod(zone: string, { object, previous }: StoreEvent, actor: string): void {
    const gate = specs.get(GATES);
    const spec = fieldsOf(gate?.object["spec"]);
    const [check] = Array.isArray(spec["checks"]) ? spec["checks"] : [];
    const when = spec["when"] as readonly string[] | undefined;
    const isJudged =
      spec["group"] === GROUP && spec["mode"] === "Enforce" && when?.join() === "BeforeFirstZone,BetweenZones";
    const decided = Math.min(DECIDED_MS, decidedMs(actor) + GATES_MS);
    if (!gate || !isJudged || now() - gate.since < decided || !previous || !isReady(previous)) return;
    const revision = revisionOf(object);
    const wanted = updateRevisions.get(zone) ?? revision;
    const pods = listPods(zone).filter(({ metadata }) => metadata.name !== object.metadata.name);
    if (revision === wanted || ran.get(zone)?.has(wanted) || pods.some((pod) => revisionOf(pod) !== revision)) return;
    // The first zone of a corrected template is not held, if a rollout that was not finished had begun it.
    if (settled.get(zone) !== revision || isUnrecorded(gate.object, zone, revision)) return;
    if (pods.length + 1 < shape.replicas || pods.some((pod) => !isReady(pod))) return;
    if ((bypasses.get(zone)?.to ?? 0) > now() - decidedMs(actor) - misjudgedMs(shape)) return;
    const exprs = [dig(check, "query", "expr"), dig(check, "baseline", "expr")].flatMap((one) => textOf(one) ?? []);
    const errors = spec["onError"] === "Proceed" ? "Success" : "Error";
    const templated = templatesSince();
    // What was decided before the templates changed had its checks for earlier ones, but not before the zone was outdated.
    const since = now() - templated < decided ? (outdatedSince.get(zone) ?? 0) : templated;
    if (!exprs.every((expr) => hasPassed(check as CheckShape, expr, since, { errors, decided })))
      violated(`${zone} begins with ${object.metadata.name} although its gate has not passed`);
    if (exprs.length === 0 && numberOf(spec["soakSeconds"]) === undefined)
      violated(`${zone} begins with ${object.metadata.name} although nobody can read its gate`);
  }

  function onZone(zone: string, object: KubeObject): void {
    const status = fieldsOf(object["status"]);
    const revision = textOf(status["updateRevision"]);
    const hasOther = listPods(zone).every((pod) => revisionOf(pod) !== revision);
    if (!hasOther) outdatedSince.delete(zone);
    else if (!outdatedSince.has(zone)) outdatedSince.set(zone, now());
    if (revision !== undefined) updateRevisions.set(zone, revision);
    const id = JSON.stringify([...updateRevisions].toSorted());
    if (templates.at(-1)?.id !== id) templates.push({ id, at: now() });
    noteRan(zone);
    noteSettled();
    noteBypass(zone, object.metadata.annotations?.[BYPASS]);
  }

  /** It counts until the time that it names, if that is near enough, and until it is taken back at most. */
  function noteBypass(zone: string, written: string | undefined): void {
    const before = bypasses.get(zone);
    if (before?.written === written) return;
    const earlier = Math.min(before?.to ?? 0, now());
    const until = Date.parse(written ?? "");
    const isNear = until - now() <= MAX_BYPASS_MS;
    bypasses.set(zone, { written, to: isNear ? Math.max(until + GATES_MS, earlier) : earlier });
  }

  /** Long enough for a reconciler to have seen it; the world begins settled. */
  function noteSettled(): void {
    const wanted = [...updateRevisions];
    const isSettled =
      wanted.length === shape.zones.length &&
      wanted.every(([zone, revision]) => listPods(zone).every((pod) => revisionOf(pod) === revision && isReady(pod)));
    if (settledSince !== undefined && now() - settledSince >= DECIDED_MS)
      for (const [zone, revision] of settling) settled.set(zone, revision);
    if (!isSettled) settledSince = undefined;
    else if (settledSince === undefined) {
      settledSince = settled.size === 0 ? -Infinity : now();
      settling = wanted;
    }
  }

  function noteRan(zone: string): void {
    const revisions = new Set(listPods(zone).map(revisionOf));
    const [only] = revisions;
    if (revisions.size === 1 && only !== undefined) ran.set(zone, new Set([...(ran.get(zone) ?? []), only]));
  }

  /** The reconciler lowers the partition. */
  function onPartition(object: KubeObject, previous: KubeObject): void {
    const [from, to] = [partitionOf(previous), partitionOf(object)];
    const phased = specs.get(PHASED_ROLLOUTS);
    if ((claimOf(previous) ?? PHASED) !== PHASED) return;
    if (to >= from || !phased || phased.object.metadata.deletionTimestamp !== undefined) return;
    const spec = fieldsOf(phased.object["spec"]);
    if (spec["skipCheck"] === true || now() - phased.since < DECIDED_MS) return;
    const status = fieldsOf(previous["status"]);
    const outdated = listPods(PHASED).filter((pod) => {
      const index = ordinalOf(pod.metadata.name);
      return index >= to && index < from && revisionOf(pod) !== status["updateRevision"];
    });
    const names = outdated.map(({ metadata }) => metadata.name).join(", ");
    if (outdated.length > 1) violated(`one partition releases several pods: ${names}`);
    const isBack = status["updateRevision"] === status["currentRevision"];
    if (outdated.length === 0 || (isBack && outdated.every(({ metadata }) => !foreign.has(metadata.uid)))) return;
    // Pods that crash may be cured by their release alone.
    const areCured = listPods(PHASED).every((pod) => isReady(pod) || isCrashing(pod));
    if (sickSince !== undefined && now() - sickSince > DECIDED_MS && !areCured)
      violated(`${names} is released while another pod has long not been ready`);
    const check = fieldsOf(spec["check"]) as unknown as CheckShape;
    const expr = textOf(dig(check, "query", "expr")) ?? "";
    const isPromoted = phased.object.metadata.annotations?.["sts.plus/promote-step"] !== undefined;
    if (!isPromoted && !hasPassed(check, expr, releasedAt)) violated(`${names} is released without its checks`);
    releasedAt = now();
  }

  function onPhasedSet({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    if (type === "ADDED") foreign = new Set(listPods(PHASED).map(({ metadata }) => metadata.uid));
    if (type !== "MODIFIED" || !previous) releasedAt = now();
    else if (isReconciler(caller)) onPartition(object, previous);
    else if (templateOf(object) !== templateOf(previous)) releasedAt = now();
  }

  function onPod({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    const zone = zoneOf(object.metadata.name);
    if (zone === PHASED) {
      const isSick = listPods(PHASED).some((pod) => !isReady(pod));
      sickSince = isSick ? (sickSince ?? now()) : undefined;
      return;
    }
    const begins = type === "MODIFIED" && object.metadata.deletionTimestamp !== undefined;
    if (begins && previous?.metadata.deletionTimestamp === undefined && isReconciler(caller))
      onZonePod(zone, { type, resource: "pods", object, ...(previous && { previous }) }, caller?.actor ?? "");
    noteRan(zone);
  }

  function onGuard({ type, resource, object }: StoreEvent): void {
    const before = specs.get(resource);
    const isSame =
      before?.object.metadata.uid === object.metadata.uid &&
      before.object.metadata.generation === object.metadata.generation;
    if (type === "DELETED") specs.delete(resource);
    else specs.set(resource, { object, since: isSame ? before.since : known.has(resource) ? now() : 0 });
    known.add(resource);
  }

  return {
    onEvent(event, caller) {
      const { resource, object } = event;
      if (object.metadata.namespace !== NAMESPACE) return;
      if (isGate(event) || (resource === PHASED_ROLLOUTS && object.metadata.name === PHASED)) onGuard(event);
      if (resource === "pods") onPod(event, caller);
      if (resource !== "statefulsets.apps") return;
      if (object.metadata.name === PHASED) onPhasedSet(event, caller);
      else onZone(object.metadata.name, object);
    },
    onAnswer(told) {
      const name = nameOf(told.expr);
      answers.set(name, [...(answers.get(name) ?? []), told]);
    },
  };
}

/** No reconciler lived long enough to see that the group was settled with this revision of the zone. */
function isUnrecorded(gate: KubeObject, zone: string, revision: string): boolean {
  const record = listOf(dig(gate, "status", "zones")).find((one) => dig(one, "name") === zone);
  return (textOf(dig(record, "settledRevision")) ?? revision) !== revision;
}

/** The check that an expression asks for: it is answered alike, whatever it selects. */
const nameOf = (expr: string): string => /^\w*/.exec(expr)?.[0] ?? "";
/** True of an event of the gate of the world. */
const isGate = ({ resource, object }: StoreEvent): boolean => resource === GATES && object.metadata.name === GATE;
const isReconciler = (caller: Caller | undefined): boolean => caller?.actor.startsWith("reconciler") === true;
const revisionOf = ({ metadata }: KubeObject): string => metadata.labels?.["controller-revision-hash"] ?? "";
const templateOf = (set: KubeObject): string => JSON.stringify(dig(set, "spec", "template"));

/** The lowest index of a pod that is released; the replicas if none is. */
function partitionOf(set: KubeObject): number {
  const replicas = numberOf(dig(set, "spec", "replicas")) ?? 1;
  const partition = numberOf(dig(set, "spec", "updateStrategy", "rollingUpdate", "partition")) ?? 0;
  return Math.min(partition, replicas);
}
