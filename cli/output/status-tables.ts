/** The tables of `zonewise status`. */
import type { ZoneRow } from "../../reconciler/group-status/status.ts";
import { describeProgress, isRecorded, judgeProgress, type GroupState, type Completion } from "../decide/group-state.ts";
import { formatAge, untilOf } from "./age.ts";
import type { Style, Tone } from "./style.ts";
import { formatTable, type Cell } from "./table.ts";

const TONES: Readonly<Record<Completion, Tone>> = { done: "good", stalled: "bad", going: "waiting" };

function phaseOf(state: GroupState): Cell {
  const text = isRecorded(state) ? (state.status?.phase ?? "Unknown") : "Unseen";
  return { text, tone: TONES[judgeProgress(state)] };
}

/** A line a group. */
export function renderGroups(groups: readonly GroupState[], style: Style, now: number): string {
  const isMixed = new Set(groups.map(({ namespace }) => namespace)).size > 1;
  const headings = ["GROUP", "PHASE", "ZONES", "UPDATED", "PODS-READY", "ZONE", "BLOCKED-BY", "SINCE", "ESTIMATED-END"];
  const rows = groups.map((state): Cell[] => [
    ...(isMixed ? [state.namespace] : []),
    state.group,
    phaseOf(state),
    ...countsOf(state),
    ...waitOf(state, now),
  ]);
  return formatTable([...(isMixed ? ["NAMESPACE"] : []), ...headings], rows, style);
}

function countsOf({ zones, status: { summary } = {} }: GroupState): Cell[] {
  if (!summary) return [`-/${zones.length}`, "-", "-", ""];
  return [summary.zones, summary.updated, summary.ready, summary.zone ?? ""];
}

function waitOf({ status: { blocked = [], progress } = {} }: GroupState, now: number): Cell[] {
  const [block] = blocked;
  const end = progress?.completionTime === undefined ? progress?.estimatedCompletionTime : undefined;
  return [block?.reason ?? "", formatAge(block?.since, now), untilOf(end, now)];
}

/** One group with its zones, what blocks it, and what is left. */
export function renderGroup(state: GroupState, style: Style, now: number): string {
  const { status = {} } = state;
  const blocks = (status.blocked ?? []).map((block): Cell[] => [
    { text: block.reason, tone: "waiting" },
    formatAge(block.since, now),
    block.objects.map(({ name }) => name).join(", "),
    block.message,
  ]);
  const steps = (status.plan ?? []).map((step): Cell[] => [
    step.action,
    step.zone,
    step.count === undefined ? "" : String(step.count),
    (step.pods ?? []).join(", "),
  ]);
  return [
    renderGroups([state], style, now),
    `\n${describeProgress(state)}\n`,
    section(formatTable(["ZONE", "STATE", "UPDATED", "READY", "REVISION"], (status.zones ?? []).map(describeZone), style)),
    section(formatTable(["BLOCKED-BY", "SINCE", "OBJECTS", "MESSAGE"], blocks, style)),
    section(formatTable(["NEXT", "ZONE", "PODS", "FIRST"], steps, style)),
  ].join("");
}

function describeZone({ name, paused, updated, ready, replicas, updateRevision }: ZoneRow): Cell[] {
  const state: Cell = paused ? { text: "paused", tone: "waiting" } : updated >= replicas ? "updated" : "outdated";
  return [
    name,
    state,
    `${updated}/${replicas}`,
    { text: `${ready}/${replicas}`, tone: ready < replicas ? "waiting" : "plain" },
    updateRevision,
  ];
}

const section = (table: string): string => (table === "" ? "" : `\n${table}`);

/** A line for a log, equal as long as nothing has changed. */
export function renderLine(state: GroupState): string {
  const { summary } = state.status ?? {};
  const { text } = phaseOf(state) as Exclude<Cell, string>;
  return `${state.group} ${text}: ${summary?.updated ?? "-"} updated, ${summary?.ready ?? "-"} ready; ${describeProgress(state)}\n`;
}
