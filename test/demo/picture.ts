/**
 * The picture, as lines of styled spans: a pure function of what is seen.
 *
 *     group ingester   rolling out   4.2 s                                        title
 *
 *     ingester-zone-a  ● 7f9c6 ready   ✕ 5d4c8 terminating   ● 5d4c8 ready        a row a zone, a cell a pod
 *
 *     ingester-zone-a: ingester-zone-a-1 terminating; ... (MaxUnavailableReached) news: what is happening and why
 */
import type { Pod } from "../../reconciler/model/pod.ts";
import type { ZoneWithPods } from "../../reconciler/model/zone.ts";
import { elapsed, type Progress } from "./progress.ts";

export type Style = "good" | "busy" | "bad" | "faint" | "strong";

export interface Span {
  readonly text: string;
  readonly style?: Style;
}

export type Line = readonly Span[];

export interface Scene {
  readonly group: string;
  readonly zones: readonly ZoneWithPods[];
  readonly progress: Progress | undefined;
  readonly news: string;
  /** Monotonic milliseconds. */
  readonly now: number;
}

export interface Picture {
  readonly title: Line;
  readonly rows: readonly Line[];
  readonly news: Line;
}

interface CellLook {
  readonly mark: string;
  readonly words: string;
  readonly style: Style;
}

const LOOKS = {
  ready: { mark: "●", words: "ready", style: "good" },
  unready: { mark: "○", words: "not ready", style: "busy" },
  terminating: { mark: "✕", words: "terminating", style: "bad" },
  absent: { mark: "·", words: "absent", style: "faint" },
} as const satisfies Record<string, CellLook>;

const REVISION_LENGTH = 5;
const CELL_LENGTH = `● ${"x".repeat(REVISION_LENGTH)} terminating`.length;

export function drawPicture({ group, zones, progress, news, now }: Scene): Picture {
  const width = Math.max(0, ...zones.map(({ name }) => name.length));
  return {
    title: drawTitle(group, progress, now),
    rows: zones.map((zone) => drawRow(zone, width)),
    news: [{ text: news, style: "faint" }],
  };
}

function drawTitle(group: string, progress: Progress | undefined, now: number): Line {
  const state: Span =
    progress?.endedAt === undefined ? { text: "rolling out", style: "busy" } : { text: "updated and ready", style: "good" };
  const time = progress ? `   ${formatSeconds(elapsed(progress, now))}` : "";
  return [{ text: `group ${group}`, style: "strong" }, { text: "   " }, state, { text: time }];
}

function drawRow(zone: ZoneWithPods, width: number): Line {
  const pods = new Map(zone.pods.map((pod) => [pod.name, pod]));
  const expected = Array.from({ length: zone.replicas }, (_, ordinal) => `${zone.name}-${ordinal}`);
  const names = [...new Set([...expected, ...pods.keys()])];
  const cells = names.map((name, place) => drawCell(pods.get(name), zone.status.updateRevision, place === names.length - 1));
  return [{ text: zone.name.padEnd(width), style: "strong" }, ...cells.flat()];
}

function drawCell(pod: Pod | undefined, updateRevision: string, last: boolean): Span[] {
  const { mark, words, style } = lookOf(pod);
  const revision = shorten(pod?.revision ?? "").padEnd(pod ? REVISION_LENGTH : 0);
  const text = [mark, revision, words].filter((part) => part !== "").join(" ");
  const gap = last ? "" : " ".repeat(Math.max(0, CELL_LENGTH - text.length));
  const revisionSpan: Span = { text: `${revision} `, style: pod?.revision === updateRevision ? "strong" : "faint" };
  return [{ text: `  ${mark} `, style }, ...(revision === "" ? [] : [revisionSpan]), { text: words, style }, { text: gap }];
}

function lookOf(pod: Pod | undefined): CellLook {
  if (!pod) return LOOKS.absent;
  if (pod.terminating) return LOOKS.terminating;
  if (pod.ready) return LOOKS.ready;
  return pod.broken === undefined ? LOOKS.unready : { ...LOOKS.unready, words: pod.broken, style: "bad" };
}

/** `ingester-zone-a-5d4c8f7b9` is `5d4c8`. */
function shorten(revision: string): string {
  return revision.slice(revision.lastIndexOf("-") + 1).slice(0, REVISION_LENGTH);
}

export function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

export function textOf(line: Line): string {
  return line.map(({ text }) => text).join("");
}
