/**
 * The oracle of checks, from the store's history and Prometheus' answers alone: a zone gives up no pod that is ready for
 * a new template before Prometheus has said yes to its gate, unless a person's bypass lasts; and a PhasedRollout releases
 * one pod after the other, each after a yes, while the others are well. For how long a yes counts is in the tables of the
 * rules.
 */
import { dig, fieldsOf, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { GROUP, NAMESPACE, ordinalOf, zoneOf } from "../names.ts";
import type { Caller } from "../network.ts";
import { misjudgedMs, type Shape } from "../shape.ts";
import { isReady } from "../oracles/stored.ts";
import { GATE, GATES, PHASED, PHASED_ROLLOUTS } from "./objects.ts";
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
/** So long ago at most was decided what takes effect now: a process stands still, and a call is on its way. */
const DECIDED_MS = 150_000;
/** Gates are read so long before the zones at most: a step that takes longer reads them again. */
const GATES_MS = 15_000;
/** No reconciler need have seen a template that was taken back so soon. */
const UNSEEN_MS = 60_000;

export function createCheckSafety({ shape, violated, listPods, now, decidedMs }: CheckSafetyOptions): CheckSafety {
  /** The gate and the PhasedRollout as they are, and since when their spec is what it is. */
  const specs = new Map<string, { readonly object: KubeObject; readonly since: number }>();
  const known = new Set<string>();
  /** The templates of each zone, newest last. */
  const templates = new Map<string, { readonly revision: string; readonly at: number }[]>();
  /** Until when a bypass of each zone's gates may have counted. */
  const bypassedUntil = new Map<string, number>();
  const answers: Told[] = [];
  let releasedAt = 0;
  let sickSince: number | undefined;

  /** Whether Prometheus has said yes to this expression since then, as often in a row as the check wants. */
  function hasPassed(check: unknown, expr: string, since: number, errors: Verdict = "Error"): boolean {
    let row = 0;
    return answers
      .filter((told) => told.at >= since && nameOf(told.expr) === nameOf(expr))
      .some(({ verdict }) => {
        row = verdict === "Success" || (verdict === "Error" && errors === "Success") ? row + 1 : 0;
        return row >= (numberOf(dig(check, "successThreshold")) ?? 1);
      });
  }

  /** A reconciler takes a pod that is ready. */
  function onTaken(pod: KubeObject, actor: string): void {
    const zone = zoneOf(pod.metadata.name);
    const decided = Math.min(DECIDED_MS, decidedMs(actor) + GATES_MS);
    const gate = specs.get(GATES);
    const { group, mode, when, checks, onError, soakSeconds } = fieldsOf(gate?.object["spec"]);
    const isAsked = group === GROUP && mode === "Enforce" && listOf(when).join() === "BeforeFirstZone,BetweenZones";
    if (!gate || !isAsked || now() - gate.since < decided) return;
    if ((bypassedUntil.get(zone) ?? 0) > now() - decidedMs(actor) - misjudgedMs(shape)) return;
    const revision = revisionOf(pod);
    const pods = listPods(zone);
    // A zone that has begun goes on, and so does a rollout that was not finished: its first zone is not held.
    const isWhole = pods.length >= shape.replicas && pods.every((one) => revisionOf(one) === revision);
    const others = pods.filter(({ metadata }) => metadata.name !== pod.metadata.name);
    if (!isWhole || !others.every(isReady) || !isSettled(gate.object, zone, revision)) return;
    const since = seenSince(zone, decided).find((one) => one.revision !== revision)?.at;
    const [check] = listOf(checks);
    const exprs = [dig(check, "query", "expr"), dig(check, "baseline", "expr")].flatMap((one) => textOf(one) ?? []);
    const errors = onError === "Proceed" ? "Success" : "Error";
    if (since !== undefined && !exprs.every((expr) => hasPassed(check, expr, since, errors)))
      violated(`${zone} begins with ${pod.metadata.name} although its gate has not passed`);
    if (exprs.length === 0 && soakSeconds === undefined)
      violated(`${zone} begins with ${pod.metadata.name} although nobody can read its gate`);
  }

  /** The templates of a zone by which it may have been decided. */
  const seenSince = (zone: string, ms: number) =>
    (templates.get(zone) ?? []).filter((_, i, all) => (all[i + 1]?.at ?? Infinity) >= now() - ms);

  function onZone({ metadata: { name, annotations }, ...zone }: KubeObject): void {
    const revision = textOf(dig(zone, "status", "updateRevision"));
    const all = templates.get(name) ?? [];
    const [before, last] = all.slice(-2);
    const isBack = before?.revision === revision && last !== undefined && now() - last.at < UNSEEN_MS;
    if (isBack) all.pop();
    else if (revision !== undefined && all.at(-1)?.revision !== revision) all.push({ revision, at: now() });
    templates.set(name, all);
    const earlier = Math.min(bypassedUntil.get(name) ?? 0, now());
    bypassedUntil.set(name, Math.max(earlier, (Date.parse(annotations?.[BYPASS] ?? "") || 0) + GATES_MS));
  }

  /** The reconciler lowers the partition. */
  function onPartition(object: KubeObject, previous: KubeObject): void {
    const [from, to] = [partitionOf(previous), partitionOf(object)];
    const phased = specs.get(PHASED_ROLLOUTS);
    if ((claimOf(previous) ?? PHASED) !== PHASED) return;
    if (to >= from || !phased || phased.object.metadata.deletionTimestamp !== undefined) return;
    const spec = fieldsOf(phased.object["spec"]);
    if (spec["skipCheck"] === true || now() - phased.since < DECIDED_MS) return;
    const { updateRevision, currentRevision } = fieldsOf(previous["status"]);
    const outdated = listPods(PHASED).filter((pod) => {
      const index = ordinalOf(pod.metadata.name);
      return index >= to && index < from && revisionOf(pod) !== updateRevision;
    });
    const names = outdated.map(({ metadata }) => metadata.name).join(", ");
    if (outdated.length > 1) violated(`one partition releases several pods: ${names}`);
    // A way back asks nothing.
    if (outdated.length === 0 || updateRevision === currentRevision) return;
    // Pods that crash may be cured by their release alone.
    const areCured = listPods(PHASED).every((pod) => isReady(pod) || isCrashing(pod));
    if (sickSince !== undefined && now() - sickSince > DECIDED_MS && !areCured)
      violated(`${names} is released while another pod has long not been ready`);
    const { check } = spec;
    const expr = textOf(dig(check, "query", "expr")) ?? "";
    const isPromoted = phased.object.metadata.annotations?.["sts.plus/promote-step"] !== undefined;
    if (!isPromoted && !hasPassed(check, expr, releasedAt)) violated(`${names} is released without its checks`);
    releasedAt = now();
  }

  function onPhasedSet({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    if (type !== "MODIFIED" || !previous) releasedAt = now();
    else if (isReconciler(caller)) onPartition(object, previous);
    else if (templateOf(object) !== templateOf(previous)) releasedAt = now();
  }

  function onPod({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
    if (zoneOf(object.metadata.name) === PHASED) {
      const isSick = listPods(PHASED).some((pod) => !isReady(pod));
      sickSince = isSick ? (sickSince ?? now()) : undefined;
      return;
    }
    const begins = type === "MODIFIED" && object.metadata.deletionTimestamp !== undefined;
    if (begins && previous && isReady(previous) && isReconciler(caller)) onTaken(object, caller?.actor ?? "");
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
      const { namespace, name } = object.metadata;
      if (namespace !== NAMESPACE) return;
      if ((resource === GATES && name === GATE) || (resource === PHASED_ROLLOUTS && name === PHASED)) onGuard(event);
      if (resource === "pods") onPod(event, caller);
      if (resource !== "statefulsets.apps") return;
      if (name === PHASED) onPhasedSet(event, caller);
      else onZone(object);
    },
    onAnswer: (told) => void answers.push(told),
  };
}

/** The gate says that the group was last settled with this revision of the zone; one that says nothing began settled. */
function isSettled(gate: KubeObject, zone: string, revision: string): boolean {
  const record = listOf(dig(gate, "status", "zones")).find((one) => dig(one, "name") === zone);
  return (textOf(dig(record, "settledRevision")) ?? revision) === revision;
}

/** The check that an expression asks for: it is answered alike, whatever it selects. */
const nameOf = (expr: string): string => /^\w*/.exec(expr)?.[0] ?? "";
const isReconciler = (caller: Caller | undefined): boolean => caller?.actor.startsWith("reconciler") === true;
const revisionOf = ({ metadata }: KubeObject): string => metadata.labels?.["controller-revision-hash"] ?? "";
const templateOf = (set: KubeObject): string => JSON.stringify(dig(set, "spec", "template"));

/** The lowest index of a pod that is released; the replicas if none is. */
function partitionOf(set: KubeObject): number {
  const replicas = numberOf(dig(set, "spec", "replicas")) ?? 1;
  const partition = numberOf(dig(set, "spec", "updateStrategy", "rollingUpdate", "partition")) ?? 0;
  return Math.min(partition, replicas);
}
