/**
 * The picture as lines of styled spans; a pure function of the group's state.
 *
 *     group ingester   rolling out   4.2 s                                        title
 *
 *     ingester-zone-a  ● 7f9c6 ready   ✕ 5d4c8 terminating   ● 5d4c8 ready        one row per zone, one cell per pod
 *
 *     ingester-zone-a: ingester-zone-a-1 terminating; ... (MaxUnavailableReached) the reconciler's last message
 */
import { isReady, isTerminating } from "../../reconciler/model/health.ts";
import type { Pod } from "../../reconciler/model/pod.ts";
import type { ZoneWithPods } from "../../reconciler/model/zone.ts";
import { elapsed, type Progress } from "./progress.ts";

export type Style = "good" | "busy" | "bad" | "faint" | "strong";

export interface Span {
  readonly text: string;
  readonly style?: Style;
}

export type Line = readonly Span[];

interface PictureInput {
  readonly group: string;
  readonly zones: readonly ZoneWithPods[];
  readonly progress: Progress | undefined;
  readonly message: string;
  /** Monotonic milliseconds. */
  readonly now: number;
}

export interface Picture {
  readonly title: Line;
  readonly rows: readonly Line[];
  readonly message: Line;
}

interface Appearance {
  readonly mark: string;
  readonly label: string;
  readonly style: Style;
}

const APPEARANCES = {
  ready: { mark: "●", label: "ready", style: "good" },
  unready: { mark: "○", label: "not ready", style: "busy" },
  terminating: { mark: "✕", label: "terminating", style: "bad" },
  absent: { mark: "·", label: "absent", style: "faint" },
} as const satisfies Record<string, Appearance>;

const REVISION_LENGTH = 5;
const CELL_LENGTH = `● ${"x".repeat(REVISION_LENGTH)} terminating`.length;
/** In zones with more pods than this, ready pods have no label, so that a row fits a terminal. */
const MAX_LABELLED = 3;

export function drawPicture(input: PictureInput): Picture {
  const { zones, message } = input;
  const width = Math.max(0, ...zones.map(({ name }) => name.length));
  return {
    title: drawTitle(input),
    rows: zones.map((zone) => drawRow(zone, width)),
    message: [{ text: message, style: "faint" }],
  };
}

function drawTitle({ group, zones, progress, now }: PictureInput): Line {
  const ended = progress?.endedAt !== undefined;
  const state: Span = ended
    ? { text: "updated and ready", style: "good" }
    : { text: isOutdated(zones) ? "rolling out" : "progressing", style: "busy" };
  const time = progress ? `   ${formatSeconds(elapsed(progress, now))}` : "";
  return [{ text: `group ${group}`, style: "strong" }, { text: "   " }, state, { text: time }];
}

function isOutdated(zones: readonly ZoneWithPods[]): boolean {
  return zones.some(({ pods, status }) => pods.some(({ revision }) => revision !== status.updateRevision));
}

function drawRow(zone: ZoneWithPods, width: number): Line {
  const pods = new Map(zone.pods.map((pod) => [pod.name, pod]));
  const expected = Array.from({ length: zone.replicas }, (_, ordinal) => `${zone.name}-${ordinal}`);
  const names = [...new Set([...expected, ...pods.keys()])];
  const labelled = names.length <= MAX_LABELLED;
  const cells = names.map((name, index) =>
    drawCell(pods.get(name), zone.status.updateRevision, { labelled, last: index === names.length - 1 }),
  );
  return [{ text: zone.name.padEnd(width), style: "strong" }, ...cells.flat()];
}

function drawCell(
  pod: Pod | undefined,
  updateRevision: string,
  { labelled, last }: { labelled: boolean; last: boolean },
): Span[] {
  const appearance = appearanceOf(pod);
  const { mark, style } = appearance;
  const label = appearance === APPEARANCES.ready && !labelled ? "" : appearance.label;
  const revision = shorten(pod?.revision ?? "").padEnd(pod ? REVISION_LENGTH : 0);
  const text = [mark, revision, label].filter((part) => part !== "").join(" ");
  const gap = last ? "" : " ".repeat(Math.max(0, (labelled ? CELL_LENGTH : 0) - text.length));
  const revisionSpan: Span = {
    text: label === "" ? revision : `${revision} `,
    style: pod?.revision === updateRevision ? "strong" : "faint",
  };
  return [
    { text: `  ${mark} `, style },
    ...(revision === "" ? [] : [revisionSpan]),
    { text: label, style },
    { text: gap },
  ];
}

function appearanceOf(pod: Pod | undefined): Appearance {
  if (!pod) return APPEARANCES.absent;
  if (isTerminating(pod)) return APPEARANCES.terminating;
  if (isReady(pod)) return APPEARANCES.ready;
  const { fault } = pod.health;
  return fault === undefined ? APPEARANCES.unready : { ...APPEARANCES.unready, label: fault, style: "bad" };
}

/** Shortens `ingester-zone-a-5d4c8f7b9` to `5d4c8`. */
function shorten(revision: string): string {
  return revision.slice(revision.lastIndexOf("-") + 1).slice(0, REVISION_LENGTH);
}

export function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

export function textOf(line: Line): string {
  return line.map(({ text }) => text).join("");
}
