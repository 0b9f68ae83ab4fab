/** The tables of `zonewise status`. */
import type { Block, ZoneRow } from "../../reconciler/group-status/status.ts";
import {
  describeProgress,
  isRecorded,
  judgeProgress,
  sortBlocks,
  type GroupState,
  type Completion,
} from "../decide/group-state.ts";
import { formatAge, untilOf } from "./age.ts";
import type { Style, Tone } from "./style.ts";
import { formatTable, type Cell } from "./table.ts";

export const TONES: Readonly<Record<Completion, Tone>> = { done: "good", stalled: "bad", going: "waiting" };

function phaseOf(state: GroupState): Cell {
  const text = isRecorded(state) ? (state.status?.phase ?? "Unknown") : "Unseen";
  return { text, tone: TONES[judgeProgress(state)] };
}

/** A line a group. */
export function renderGroups(groups: readonly GroupState[], style: Style, now: number): string {
  const isMixed = new Set(groups.map(({ namespace }) => namespace)).size > 1;
  const headings = [
    "GROUP",
    "PHASE",
    "ZONES",
    "UPDATED",
    "PODS-READY",
    "ZONE",
    "WAITING-FOR",
    "BLOCKED-BY",
    "SINCE",
    "ESTIMATED-END",
  ];
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

function waitOf(state: GroupState, now: number): Cell[] {
  const { progress } = state.status ?? {};
  const { blocked, waiting } = sortBlocks(state, now);
  const end = progress?.completionTime === undefined ? progress?.estimatedCompletionTime : undefined;
  const [first] = [...blocked, ...waiting];
  return [
    waiting[0]?.reason ?? "",
    { text: blocked[0]?.reason ?? "", tone: "bad" },
    formatAge(first?.since, now),
    untilOf(end, now),
  ];
}

const describeBlock =
  (tone: Tone, now: number) =>
  ({ reason, since, objects, message }: Block): Cell[] => [
    { text: reason, tone },
    formatAge(since, now),
    objects.map(({ name }) => name).join(", "),
    message,
  ];

/** One group with its zones, what blocks it, and what is left. */
export function renderGroup(state: GroupState, style: Style, now: number): string {
  const { status = {} } = state;
  const { blocked, waiting } = sortBlocks(state, now);
  const steps = (status.plan ?? []).map((step): Cell[] => [
    step.action,
    step.zone,
    step.count === undefined ? "" : String(step.count),
    (step.pods ?? []).join(", "),
  ]);
  return [
    renderGroups([state], style, now),
    `\n${describeProgress(state)}\n`,
    section(
      formatTable(["ZONE", "STATE", "UPDATED", "READY", "REVISION"], (status.zones ?? []).map(describeZone), style),
    ),
    section(formatTable(["BLOCKED-BY", "SINCE", "OBJECTS", "MESSAGE"], blocked.map(describeBlock("bad", now)), style)),
    section(
      formatTable(["WAITING-FOR", "SINCE", "OBJECTS", "MESSAGE"], waiting.map(describeBlock("waiting", now)), style),
    ),
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
