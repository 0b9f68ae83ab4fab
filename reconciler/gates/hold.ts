/** Why the gates of a group hold a zone back, or keep the group from counting as settled. Only stored passes count. */
import { earliest, formatTimestamp } from "../../infra/timestamp.ts";
import { hasFailed } from "../checks/check.ts";
import { isCheckRefused, type NamedCheck, type NamedResult, planChecks } from "../checks/result.ts";
import { hold, type Hold, type Reason } from "../model/decision.ts";
import type { Bypass, GateVerdicts, Zone } from "../model/zone.ts";
import { RETRY_ANNOTATION, type Gate, soakEnd } from "./gate.ts";
import { describeBypass, findBypass, noteBypasses } from "./bypass.ts";
import { isBypassed } from "./pass.ts";
import type { GateRecord, Point, Stage } from "./record.ts";
import { currentRecord, needOf, needsLastStage, type RolloutView } from "./rollout.ts";

type GateView = Omit<RolloutView, "wanted" | "isHeld">;

/**
 * The holds of all gates of a group. All gates must pass; the hold is that of the first gate whose checks are awaited.
 */
export function judgeGates(gates: readonly Gate[], view: GateView): GateVerdicts {
  const enforced = gates.filter(({ mode }) => mode === "Enforce");
  const first = (judge: (gate: Gate) => Hold | undefined): Hold | undefined => {
    const holds = enforced.flatMap((gate) => judge(gate) ?? []);
    return holds.find(({ isBrief }) => !isBrief) ?? holds[0];
  };
  const holds = view.zones.flatMap((zone): [uid: string, held: Hold][] => {
    const held = first((gate) => holdZone(gate, view, zone));
    return held ? [[zone.uid, held]] : [];
  });
  return {
    holds: new Map(holds),
    beforeSettled: first((gate) => holdSettled(gate, view)),
  };
}

/**
 * A zone whose checks have passed still waits until the gate has recorded that it begins. Otherwise a process that dies
 * right after the first deletion would leave a zone that has begun without a record of it.
 */
function holdZone(gate: Gate, view: GateView, zone: Zone): Hold | undefined {
  const asked = askFor(gate, view, zone);
  const { record, need, stage } = asked;
  const isBrief = !waitsFor(asked) && ({ isBrief: true } as const);
  return need === "Nothing"
    ? undefined
    : { ...describeHold(gate, { zone, who: zone.name, record }, stage), ...isBrief };
}

/** The bypasses of these zones as the next tick will know them, each once; of gates that observe, too. */
export function bypassesOf(gates: readonly Gate[], { zones, now }: Pick<GateView, "zones" | "now">): Bypass[] {
  const stored = gates.map(({ record }) => noteBypasses(record?.bypasses ?? [], zones, now));
  return zones.flatMap((zone) => {
    const [found] = stored.flatMap((one) => findBypass(one, zone, now) ?? []);
    return found ?? [];
  });
}

/** True if an enforced gate waits for the checks of the wanted zone. */
export function isHeld(gates: readonly Gate[], { wanted, ...view }: Omit<RolloutView, "isHeld">): boolean {
  if (wanted.kind !== "zone") return false;
  const { zone } = wanted;
  return gates.some((gate) => gate.mode === "Enforce" && waitsFor(askFor(gate, view, zone)));
}

/** A bypass counts once it is stored; a zone that has one only waits until its start is recorded. */
function askFor(gate: Gate, view: GateView, zone: Zone) {
  const record = currentRecord(gate, { ...view, wanted: { kind: "zone", zone } });
  const asked = needOf(gate, record, zone);
  const need = asked !== "Nothing" && isBypassed(record, zone.name, view) ? "Record" : asked;
  const stage = record.stages.find((one) => one.point === need && one.zone === zone.name);
  return { record, need, stage };
}

const waitsFor = ({ need, stage }: ReturnType<typeof askFor>): boolean =>
  need !== "Nothing" && need !== "Record" && stage?.state !== "Passed";

function holdSettled(gate: Gate, view: GateView): Hold | undefined {
  const record = currentRecord(gate, { ...view, wanted: { kind: "settled" } });
  const [zone] = view.zones;
  if (!zone || !needsLastStage(gate, record)) return undefined;
  const held = { zone, who: `group ${gate.group}`, record };
  if (isBypassed(record, "", view)) return { ...describeHold(gate, held, undefined), isBrief: true };
  return describeHold(
    gate,
    held,
    record.stages.find(({ point }) => point === "AfterLastZone"),
  );
}

interface Held {
  /** The StatefulSet that gets the Event. */
  readonly zone: Zone;
  readonly who: string;
  readonly record: GateRecord;
}

function describeHold(gate: Gate, { zone, who, record }: Held, stage: Stage | undefined): Hold {
  const reason = stage ? reasonOf(gate, stage) : "GateWaiting";
  const rest = stage && stage.state !== "Passed" ? describeStage(gate, stage, record) : "its status is being written";
  const message = `${who} ${reason === "GateFailed" ? "is stopped by" : "waits for"} gate ${gate.ref.name}: ${rest}`;
  const until = stage && reason !== "GateFailed" && reason !== "GateInvalid" ? nextAt(gate, stage) : undefined;
  return {
    ...hold(reason, message, [zone, gate.ref]),
    dedupKey: `${who} ${gate.ref.name}`,
    ...(until !== undefined && { until }),
  };
}

/** The reason why a stage that has not passed holds. */
export function reasonOf(gate: Gate, stage: Stage): Extract<Reason, `Gate${string}`> {
  const { onError } = gate;
  const { state, checks } = stage;
  if (state === "Failed") return "GateFailed";
  if (problemOf(gate, stage)?.isFinal) return "GateInvalid";
  return onError === "Wait" && checks.some(({ lastVerdict }) => lastVerdict === "Error")
    ? "GateUnreachable"
    : "GateWaiting";
}

/**
 * The problem of a gate's present spec. `isFinal`: the gate opens only once it is corrected. Of expressions, only a
 * refusal in the stage is final: one that was refused before may be answered when it is asked again.
 */
function problemOf({ generation, observedGeneration, onError, conditions }: Gate, { state, checks }: Stage) {
  if (state !== "Waiting" || generation !== observedGeneration) return undefined;
  const valid = conditions.find(({ type }) => type === "Valid");
  if (valid?.reason === "SpecUnreadable") return { message: valid.message, isFinal: true };
  if (valid?.reason !== "ExpressionInvalid" || onError === "Proceed") return undefined;
  return { message: valid.message, isFinal: checks.some(isCheckRefused) };
}

const PLACES: Readonly<Record<Point, (zone: string) => string>> = {
  BeforeFirstZone: (zone) => `before the first zone, ${zone}`,
  BetweenZones: (zone) => `between zones, before ${zone}`,
  AfterLastZone: () => "after the last zone",
};

/** A place of the rollout: `between zones, before zone-b`. */
export const describePlace = ({ point, zone }: Pick<Stage, "point" | "zone">): string => PLACES[point](zone);

/** The state of a stage in words: its checks, since when it is asked, and when next. */
export function describeStage(gate: Gate, stage: Stage, record: GateRecord): string {
  const problem = problemOf(gate, stage);
  if (problem?.isFinal) return `it is invalid, and opens only once it is corrected: ${problem.message}`;
  const resultOf = ({ name }: NamedCheck) => stage.checks.find((result) => result.name === name);
  const checks = [
    ...(problem ? [`it may be invalid (${problem.message})`] : []),
    ...(stage.state === "Waiting" && gate.soakSeconds > 0
      ? [`it soaks until ${formatTimestamp(soakEnd(gate, stage))}`]
      : []),
    ...gate.checks.map((check) => describeCheck(check, resultOf(check))),
  ].join("; ");
  const since = `since ${formatTimestamp(stage.since)}`;
  if (stage.state === "Passed") return `${checks}; ${since}`;
  if (stage.state === "Bypassed") return `bypassed${describeStored(stage, record)}; ${checks}; ${since}`;
  if (stage.state === "Failed")
    return `${checks}; it stays failed until a template changes, or until the gate's annotation ${RETRY_ANNOTATION} is ${nextRetry(record)}`;
  const next = nextAt(gate, stage);
  return `${checks}; ${since}${next === undefined ? "" : `, next check at ${formatTimestamp(next)}`}`;
}

/** The bypass of the stage's zone; for the whole group, that of its first zone. */
function describeStored({ zone }: Stage, { bypasses }: GateRecord): string {
  const known = bypasses.find((one) => zone === "" || one.zone === zone);
  return known === undefined ? "" : ` ${describeBypass(known)}`;
}

/** The value of the annotation that asks a failed gate again; each asks once. */
export function nextRetry({ identity, retried }: GateRecord): string {
  if (retried === undefined) return identity;
  const [, times = "1"] = /\/(\d{1,15})$/.exec(retried) ?? [];
  return `${identity}/${Number(times) + 1}`;
}

/** When the next check is due, or the soak time of a gate without checks is over. */
function nextAt(gate: Gate, stage: Stage): number | undefined {
  const { checks, soakSeconds } = gate;
  const soaked = checks.length === 0 && soakSeconds > 0 ? soakEnd(gate, stage) : undefined;
  return earliest([soaked, ...planChecks(checks, stage.checks, stage.since).map(({ dueAt }) => dueAt)]);
}

function describeCheck(check: NamedCheck, result: NamedResult | undefined): string {
  const { name, successThreshold } = check;
  if (!result) return `check "${name}" has not run yet`;
  const { streak, lastVerdict, message, sample } = result;
  if (lastVerdict === "Error") return `check "${name}" has no answer${message === undefined ? "" : ` (${message})`}`;
  const answer = sample === undefined ? "no data" : sample;
  if (hasFailed(check, streak)) return `check "${name}" has failed ${streak.failures} times in a row (${answer})`;
  if (lastVerdict === "Failure") return `check "${name}" fails (${answer})`;
  const compared = check.baseline && sample !== undefined ? ` (${sample})` : "";
  return `check "${name}": ${Math.min(streak.successes, successThreshold)} of ${successThreshold} consecutive passes${compared}`;
}
