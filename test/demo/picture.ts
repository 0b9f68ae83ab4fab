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
/** With more pods than this in a zone, ready ones go without the word, so that a row fits a terminal. */
const ROOMY = 3;

export function drawPicture({ group, zones, progress, news, now }: Scene): Picture {
  const width = Math.max(0, ...zones.map(({ name }) => name.length));
  return {
    title: drawTitle(group, zones, progress, now),
    rows: zones.map((zone) => drawRow(zone, width)),
    news: [{ text: news, style: "faint" }],
  };
}

function drawTitle(group: string, zones: readonly ZoneWithPods[], progress: Progress | undefined, now: number): Line {
  const over = progress?.endedAt !== undefined;
  const state: Span = over
    ? { text: "updated and ready", style: "good" }
    : { text: isOutdated(zones) ? "rolling out" : "on its way", style: "busy" };
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
  const roomy = names.length <= ROOMY;
  const cells = names.map((name, place) =>
    drawCell(pods.get(name), zone.status.updateRevision, { roomy, last: place === names.length - 1 }),
  );
  return [{ text: zone.name.padEnd(width), style: "strong" }, ...cells.flat()];
}

function drawCell(pod: Pod | undefined, updateRevision: string, { roomy, last }: { roomy: boolean; last: boolean }): Span[] {
  const look = lookOf(pod);
  const { mark, style } = look;
  const words = look === LOOKS.ready && !roomy ? "" : look.words;
  const revision = shorten(pod?.revision ?? "").padEnd(pod ? REVISION_LENGTH : 0);
  const text = [mark, revision, words].filter((part) => part !== "").join(" ");
  const gap = last ? "" : " ".repeat(Math.max(0, (roomy ? CELL_LENGTH : 0) - text.length));
  const revisionSpan: Span = {
    text: words === "" ? revision : `${revision} `,
    style: pod?.revision === updateRevision ? "strong" : "faint",
  };
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
