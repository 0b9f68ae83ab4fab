/** The tables of `zonewise status`. */
import { parseTimestamp } from "../../infra/timestamp.ts";
import { withoutHolds } from "../../reconciler/group-status/decide-status.ts";
import type { StoredHold, ZoneRow } from "../../reconciler/group-status/status.ts";
import { findClosedWindow } from "../../reconciler/model/rollout-window.ts";
import { nameImages } from "../../reconciler/model/zone.ts";
import {
  describeProgress,
  holdsOf,
  judgeProgress,
  nameRevision,
  phaseOf,
  type GroupState,
  type Completion,
} from "../decide/group-state.ts";
import { formatAge, untilOf } from "./age.ts";
import type { Display, Tone } from "./style.ts";
import { formatByNamespace, formatTable, wrapWords, type Cell, type Column } from "./table.ts";

export const TONES: Readonly<Record<Completion, Tone>> = { done: "good", blocked: "bad", going: "moving" };
/** Phases in which nothing moves, and nobody is needed. */
const AT_REST: ReadonlySet<string> = new Set(["Waiting", "Paused", "Unseen"]);

/** A ready group may still wait to be scaled: it is not shown in green then. */
function phaseCell(state: GroupState): Cell {
  const known = phaseOf(state);
  const text = state.isOld ? `${known} (old)` : known;
  const progress = judgeProgress(state);
  const isHeld = holdsOf(state).length > 0;
  const isWaiting = progress === "done" ? isHeld : progress === "going" && AT_REST.has(known);
  return { text, tone: isWaiting ? "waiting" : TONES[progress] };
}

const COLUMNS: readonly Column[] = [
  { heading: "GROUP" },
  { heading: "PHASE" },
  { heading: "ZONES", rank: 7 },
  { heading: "UPDATED", rank: 3 },
  { heading: "PODS-READY", rank: 4 },
  { heading: "ZONE", rank: 6 },
  { heading: "REASON", rank: 2 },
  { heading: "WAITS-FOR", rank: 1 },
  { heading: "SINCE", rank: 5 },
  { heading: "ESTIMATED-END", rank: 8 },
];

/** One line per group. */
export const renderGroups = (groups: readonly GroupState[], display: Display, now: number): string =>
  formatByNamespace(
    COLUMNS,
    groups.map((state) => ({
      namespace: state.namespace,
      cells: [state.group, phaseCell(state), ...countsOf(state), ...holdOf(state, now)],
    })),
    display,
  );

function countsOf({ zones, status: { summary } = {} }: GroupState): Cell[] {
  if (!summary) return [`-/${zones.length}`, "-", "-", ""];
  return [summary.zones, summary.updated, summary.ready, summary.zone ?? ""];
}

function holdOf(state: GroupState, now: number): Cell[] {
  const [first] = holdsOf(state);
  return [
    { text: first?.reason ?? "", tone: toneOf(first?.phase) },
    first?.waitsFor ? `${first.waitsFor.kind.toLowerCase()}/${first.waitsFor.name}` : "",
    formatAge(first?.since, now),
    untilOf(estimatedEnd(state), now),
  ];
}

/** No estimate while the reconciler does not tick. */
function estimatedEnd({ isOld, status: { progress } = {} }: GroupState): string | undefined {
  return isOld || progress?.completionTime !== undefined ? undefined : progress?.estimatedCompletionTime;
}

const toneOf = (phase: StoredHold["phase"] | undefined): Tone =>
  phase === "Blocked" ? "bad" : phase === "RollingOut" ? "moving" : "waiting";

const describeHold =
  (zones: GroupState["zones"], now: number) =>
  ({ reason, phase, since, objects, message }: StoredHold): Cell[] => [
    reason,
    { text: phase, tone: toneOf(phase) },
    formatAge(since, now),
    objects.map(({ name }) => name).join(", "),
    nameImages(message, zones),
  ];

const HOLD_COLUMNS: readonly Column[] = [
  { heading: "REASON" },
  { heading: "PHASE" },
  { heading: "SINCE", rank: 2 },
  { heading: "OBJECTS", rank: 3 },
  { heading: "MESSAGE", rank: 1 },
];

/** One group with its zones, its holds, and the remaining steps. */
export function renderGroup(state: GroupState, display: Display, now: number): string {
  const { zones, status = {} } = state;
  const sentence = nameImages(withoutHolds(describeProgress(state), holdsOf(state)), zones);
  const steps = (status.plan ?? []).map((step): Cell[] => [
    step.action,
    step.zone,
    step.count === undefined ? "" : String(step.count),
    (step.pods ?? []).join(", "),
  ]);
  return [
    renderGroups([state], display, now),
    sentence === "" ? "" : `\n${wrapWords(sentence, display.width?.() ?? Infinity).join("\n")}\n`,
    ...[...describeBypasses(status.zones ?? [], now), ...describeWindows(state, now)].map(
      (line) => `\n${wrapWords(line, display.width?.() ?? Infinity).join("\n")}\n`,
    ),
    section(
      formatTable(
        ["ZONE", "STATE", "UPDATED", "READY", "REVISION"],
        (status.zones ?? []).map(describeZone(state)),
        display,
      ),
    ),
    section(formatTable(HOLD_COLUMNS, holdsOf(state).map(describeHold(zones, now)), display)),
    section(formatTable(["NEXT", "ZONE", "PODS", "FIRST"], steps, display)),
  ].join("");
}

/** A bypass ends by itself, whether or not a tick has recorded that. */
const describeBypasses = (zones: readonly ZoneRow[], now: number): string[] =>
  zones.flatMap(({ name, gatesBypassedUntil: until = "", gatesBypassReason: reason }) =>
    (parseTimestamp(until) ?? 0) > now
      ? [`${name} may begin without its gates until ${until}${reason === undefined ? "" : ` (${reason})`}`]
      : [],
  );

/** Closed windows of zones, except those that a hold already reports. */
function describeWindows(state: GroupState, now: number): string[] {
  const { zones } = state;
  const told = new Set(
    holdsOf(state).flatMap(({ reason, objects }) =>
      reason.startsWith("Window") ? objects.map(({ name }) => name) : [],
    ),
  );
  return zones.flatMap(({ name, window }) => {
    const closed = told.has(name) ? undefined : findClosedWindow(window, now);
    return closed ? [`no pod of ${name} that serves is replaced: ${closed.message}`] : [];
  });
}

const describeZone =
  (group: GroupState) =>
  ({ name, paused, updated, ready, replicas, updateRevision }: ZoneRow): Cell[] => {
    const state: Cell = paused ? { text: "paused", tone: "waiting" } : updated >= replicas ? "updated" : "outdated";
    return [
      name,
      state,
      `${updated}/${replicas}`,
      { text: `${ready}/${replicas}`, tone: ready < replicas ? "warning" : "plain" },
      nameRevision(updateRevision, group),
    ];
  };

const section = (table: string): string => (table === "" ? "" : `\n${table}`);

/** A line for a log, equal as long as nothing has changed. */
export function renderLine(state: GroupState): string {
  const { summary } = state.status ?? {};
  const { text } = phaseCell(state) as Exclude<Cell, string>;
  const sentence = nameImages(describeProgress(state), state.zones);
  return `${state.group} ${text}: ${summary?.updated ?? "-"} updated, ${summary?.ready ?? "-"} ready; ${sentence}\n`;
}
