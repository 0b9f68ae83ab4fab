/** The tables of `zonewise status`. */
import type { StoredHold, ZoneRow } from "../../reconciler/group-status/status.ts";
import { type ShownGroup, notesOf, type Standing } from "../../reconciler/group-status/view.ts";
import { nameImages } from "../../reconciler/model/zone.ts";
import { firstReleased } from "../../reconciler/phased/target.ts";
import { explainPhased, nextCheckOf, type Phased } from "../decide/explain-phased.ts";
import { type GroupState, viewGroupState } from "../decide/group-state.ts";
import { standingOfPhased } from "../decide/overview.ts";
import { type Display, formatAge, type Tone, untilOf } from "./text.ts";
import { formatByNamespace, formatTable, wrapWords, type Cell, type Column } from "./table.ts";

const TONES: Readonly<Record<Standing, Tone>> = {
  done: "good",
  blocked: "bad",
  moving: "moving",
  waiting: "waiting",
};

const nameOfPhase = ({ phase, isOld }: ShownGroup): string => (isOld ? `${phase} (old)` : phase);

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
    groups.map((state) => {
      const view = viewGroupState(state);
      const phase = { text: nameOfPhase(view), tone: TONES[view.standing] };
      return { namespace: state.namespace, cells: [state.group, phase, ...countsOf(state), ...holdOf(view, now)] };
    }),
    display,
  );

function countsOf({ zones, status: { summary } = {} }: GroupState): Cell[] {
  if (!summary) return [`-/${zones.length}`, "-", "-", ""];
  return [summary.zones, summary.updated, summary.ready, summary.zone ?? ""];
}

function holdOf({ holds: [first], endsAt }: ShownGroup, now: number): Cell[] {
  return [
    { text: first?.reason ?? "", tone: toneOf(first?.phase) },
    first?.waitsFor ? `${first.waitsFor.kind.toLowerCase()}/${first.waitsFor.name}` : "",
    formatAge(first?.since, now),
    untilOf(endsAt, now),
  ];
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
  const { zones } = state;
  const view = viewGroupState(state);
  const sentence = nameImages(view.besideHolds, zones);
  const steps = view.plan.map((step): Cell[] => [
    step.action,
    step.zone,
    step.count === undefined ? "" : String(step.count),
    (step.pods ?? []).join(", "),
  ]);
  return [
    renderGroups([state], display, now),
    sentence === "" ? "" : `\n${wrapWords(sentence, display.width?.() ?? Infinity).join("\n")}\n`,
    section(formatTable(ZONE_COLUMNS, view.zones.map(describeZone(state, now)), display)),
    section(formatTable(HOLD_COLUMNS, view.holds.map(describeHold(zones, now)), display)),
    section(formatTable(["NEXT", "ZONE", "PODS", "FIRST"], steps, display)),
  ].join("");
}

const ZONE_COLUMNS: readonly Column[] = [
  { heading: "ZONE" },
  { heading: "UPDATED" },
  { heading: "READY" },
  { heading: "REVISION", rank: 1 },
  { heading: "NOTES", isOptional: true },
];

const describeZone =
  ({ zones }: GroupState, now: number) =>
  (row: ZoneRow): Cell[] => {
    const { name, updated, ready, replicas, updateRevision } = row;
    return [
      name,
      `${updated}/${replicas}`,
      { text: `${ready}/${replicas}`, tone: ready < replicas ? "warning" : "plain" },
      nameImages(updateRevision, zones),
      notesOf(row, now).join(", "),
    ];
  };

const section = (table: string): string => (table === "" ? "" : `\n${table}`);

/** A line for a log, equal as long as nothing has changed. */
export function renderLine(state: GroupState): string {
  const { summary } = state.status ?? {};
  const view = viewGroupState(state);
  const sentence = nameImages(view.sentence, state.zones);
  return `${state.group} ${nameOfPhase(view)}: ${summary?.updated ?? "-"} updated, ${summary?.ready ?? "-"} ready; ${sentence}\n`;
}

const PHASED_COLUMNS: readonly Column[] = [
  { heading: "PHASED-ROLLOUT" },
  { heading: "TARGET", rank: 5 },
  { heading: "PHASE" },
  { heading: "PARTITION", rank: 4 },
  { heading: "UPDATED", rank: 2 },
  { heading: "REASON", rank: 1 },
  { heading: "SINCE", rank: 3 },
  { heading: "NEXT-CHECK", rank: 6 },
];

export const renderPhased = (phased: readonly Phased[], display: Display, now: number): string =>
  formatByNamespace(
    PHASED_COLUMNS,
    phased.map((one) => ({ namespace: one.rollout.namespace, cells: describeRow(one, now) })),
    display,
  );

function describeRow(phased: Phased, now: number): Cell[] {
  const { rollout, target } = phased;
  const tone = TONES[standingOfPhased(phased)];
  const { allowed, reason, since, until } = explainPhased(phased);
  const counts = target
    ? [`${firstReleased(target)}/${target.replicas}`, `${target.status.updated}/${target.replicas}`]
    : ["-", "-"];
  const phase = { text: reason === "Unseen" ? "Unseen" : rollout.status.phase, tone };
  return [
    rollout.name,
    rollout.targetRef,
    phase,
    ...counts,
    { text: allowed ? "" : reason, tone },
    formatAge(since, now),
    untilOf(until ?? nextCheckOf(phased), now),
  ];
}

/** A line for a log, equal as long as nothing has changed. */
export function renderPhasedLine(phased: Phased): string {
  const { message } = explainPhased(phased);
  return `phasedrollout/${phased.rollout.name} ${phased.rollout.status.phase || "Unseen"}: ${message}\n`;
}
