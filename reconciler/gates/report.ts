/** Reports a gate: the conditions in its status, and the changes that get an Event. */
import { isSameJson } from "../../infra/json.ts";
import type { QueryAnswer } from "../../infra/prometheus/answer.ts";
import { isCheckRefused, type NamedCheck, REFUSALS } from "../checks/result.ts";
import { type Gate, isReadable } from "./gate.ts";
import { describePlace, describeStage, reasonOf } from "./hold.ts";
import { findImpossible } from "./placeholder-values.ts";
import type { GateRecord, Stage } from "./record.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import type { Condition, UnstampedCondition } from "../../infra/kubernetes/condition.ts";
import type { ObjectRef } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";
import { describeBypass, findBypass } from "./bypass.ts";

/** A change that gets an Event on the gate, or on another object. */
export interface GateChange {
  readonly regarding?: ObjectRef;
  readonly type: "Normal" | "Warning";
  readonly reason:
    | "GatePassed"
    | "GateFailed"
    | "GateUnreachable"
    | "GateWaiting"
    | "GateInvalid"
    | "GatesBypassed"
    | "BypassRefused";
  readonly message: string;
  readonly cause: string;
}

/** Describes whether the gate is open, by the last stage that was asked. */
export function describeOpen(gate: Gate, record: GateRecord | undefined): UnstampedCondition {
  const stage = record?.stages.at(-1);
  if (!record || !stage || record.settledAt !== undefined)
    return {
      type: "Open",
      status: "True",
      reason: record?.settledAt === undefined ? "NotAsked" : "Settled",
      message: "",
    };
  const observed = gate.mode === "Observe" ? " (it only observes: nothing waits)" : "";
  const message = `${describePlace(stage)}: ${describeStage(gate, stage, record)}${observed}`;
  if (isOpen(stage)) return { type: "Open", status: "True", reason: stage.state, message };
  return { type: "Open", status: "False", reason: reasonOf(gate, stage), message };
}

const say = (status: UnstampedCondition["status"], reason: string, message = ""): UnstampedCondition => ({
  type: "Valid",
  status,
  reason,
  message,
});

/**
 * The condition `Valid`: a gate may have problems although the API server has accepted it. By the spec, then by the last
 * results, then as it is stored for this spec. Undefined if Prometheus must be asked whether it understands the
 * expressions.
 */
export function describeValid(gate: Gate, hasZones: boolean, stage?: Stage): UnstampedCondition | undefined {
  if (!isReadable(gate)) return say("False", "SpecUnreadable", "the spec cannot be read: the gate never opens");
  const impossible = findImpossible(gate);
  if (impossible.length > 0) return say("False", "ExpressionInvalid", impossible.join("; "));
  if (!hasZones)
    return say("False", "GroupNotFound", `no StatefulSet in this namespace has the label rollout-group: ${gate.group}`);
  return validByResults(gate, stage) ?? gate.conditions.find((one) => isOfSpec(gate, one) && one.reason in ANSWERED);
}

const ANSWERED = { Valid: true, ExpressionInvalid: true } as const;

const isOfSpec = ({ generation }: Gate, { type, observedGeneration }: Condition): boolean =>
  type === "Valid" && observedGeneration === generation;

/** A failed stage may have results of an earlier spec. */
function validByResults({ checks }: Gate, stage: Stage | undefined): UnstampedCondition | undefined {
  if (!stage || stage.state === "Failed") return undefined;
  const refused = stage.checks.filter(isCheckRefused).map(({ name, message }) => `check ${name}: ${message ?? ""}`);
  if (refused.length > 0) return say("False", "ExpressionInvalid", refused.join("; "));
  const isAnswered = ({ name }: NamedCheck): boolean =>
    stage.checks.some((result) => result.name === name && result.lastVerdict !== "Error");
  return checks.every(isAnswered) ? say("True", "Valid") : undefined;
}

/** The stored condition of this spec, if Prometheus did not answer yet. */
export const unanswered = (gate: Gate): UnstampedCondition | undefined =>
  gate.conditions.find((one) => isOfSpec(gate, one) && one.reason === "ExpressionUnanswered");

/** An expression that was tried. */
interface TriedExpression {
  /** The name of the check that has the expression. */
  readonly name: string;
  /** Says which of two queries it is, as results do. */
  readonly which: string;
  /** Undefined if it was not asked yet. */
  readonly answer: QueryAnswer | undefined;
}

/** The condition `Valid` after the expressions were tried. */
export function validByAnswers(tried: readonly TriedExpression[]): UnstampedCondition {
  const errors: string[] = [];
  const open: string[] = [];
  for (const { name, which, answer } of tried) {
    if (answer === undefined) open.push(`check "${name}" has not run yet`);
    else if (answer.kind === "Error")
      (REFUSALS.has(answer.code) ? errors : open).push(`check ${name}: ${answer.code}: ${which}${answer.message}`);
  }
  if (errors.length > 0) return say("False", "ExpressionInvalid", errors.join("; "));
  return open.length > 0 ? say("Unknown", "ExpressionUnanswered", open.join("; ")) : say("True", "Valid");
}

/** True if two statuses say the same, whenever their conditions began. */
export function isSameReport<S extends { readonly conditions: readonly Condition[] }>(one: S, other: S): boolean {
  const shown = (status: S) => ({
    ...status,
    conditions: status.conditions.map(({ type, status, reason, message }) => [type, status, reason, message]),
  });
  return isSameJson(shown(one), shown(other));
}

/** The Event of a gate whose spec or group is wrong, once a change. */
export function complaintOf({ conditions }: Gate, valid: Condition): GateChange[] {
  const before = conditions.find(({ type }) => type === "Valid");
  if (valid.status !== "False" || (before?.reason === valid.reason && before.message === valid.message)) return [];
  return [{ type: "Warning", reason: "GateInvalid", message: valid.message, cause: valid.message }];
}

const BYPASSED = { type: "Warning", reason: "GatesBypassed" } as const;

/**
 * The Events of bypasses that a gate has seen for the first time, on their StatefulSets: the same from each gate of the
 * group. One whose time was over by then gets none.
 */
export function bypassesSeen(
  before: GateRecord | undefined,
  { bypasses }: GateRecord,
  { zones, now }: { readonly zones: readonly Zone[]; readonly now: number },
): GateChange[] {
  const known = new Set(before?.bypasses.map(({ zone, until }) => `${zone} ${until}`));
  return bypasses.flatMap((one): GateChange[] => {
    const regarding = zones.find(({ name }) => name === one.zone);
    if (!regarding || known.has(`${one.zone} ${one.until}`)) return [];
    const change = { regarding, cause: one.until };
    if (!one.accepted)
      return [
        {
          ...change,
          type: "Warning",
          reason: "BypassRefused",
          message: `annotation ${ANNOTATIONS.bypassGatesUntil} is "${one.until}", more than 24 h ahead: it bypasses no gate of ${one.zone}, now or later`,
        },
      ];
    if (!findBypass(bypasses, regarding, now)) return [];
    const message = `${one.zone} may begin without its gates ${describeBypass(one)}; all other rules still apply`;
    return [{ ...change, ...BYPASSED, message }];
  });
}

/** The Events of the stages that have changed between two records. */
export function changesOf(gate: Gate, before: GateRecord | undefined, after: GateRecord): GateChange[] {
  const stages = before?.identity === after.identity && before.startedAt === after.startedAt ? before.stages : [];
  return after.stages.flatMap((stage) => {
    const earlier = stages.find(({ point, zone }) => point === stage.point && zone === stage.zone);
    return earlier && kindOf(gate, earlier) === kindOf(gate, stage) ? [] : [changeTo(gate, stage, after)];
  });
}

const isOpen = ({ state }: Stage): boolean => state === "Passed" || state === "Bypassed";
const kindOf = (gate: Gate, stage: Stage) => (isOpen(stage) ? stage.state : reasonOf(gate, stage));

function changeTo(gate: Gate, stage: Stage, record: GateRecord): GateChange {
  const observed = gate.mode === "Observe" ? " (observed only)" : "";
  const message = `${describePlace(stage)}: ${describeStage(gate, stage, record)}${observed}`;
  const change = { message, cause: `${record.identity} ${stage.point} ${stage.zone} ${stage.since}` };
  if (stage.state === "Passed") return { type: "Normal", reason: "GatePassed", ...change };
  if (stage.state === "Bypassed") return { ...BYPASSED, ...change };
  const reason = reasonOf(gate, stage);
  return { type: reason === "GateWaiting" ? "Normal" : "Warning", reason, ...change };
}
