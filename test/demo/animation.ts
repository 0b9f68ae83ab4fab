/**
 * The README's picture: the demonstration's output during its rollout as an SVG that repeats it in a loop.
 *
 *   printed lines -> tracks (the title, one row per zone, the message) of texts with times
 *     -> one element per text, visible during its time
 */
import type { Style } from "./picture.ts";
import { wrap } from "./screen.ts";

/** A text, and when it appears, in seconds from the start of the animation. */
interface Moment {
  readonly at: number;
  readonly text: string;
}

interface Recording {
  /** By the zone's name. */
  readonly zones: ReadonlyMap<string, readonly Moment[]>;
  readonly messages: readonly Moment[];
  /** The rollout's duration. */
  readonly seconds: number;
}

/** Seconds without changes before and after the rollout. */
const BEFORE = 1;
const AFTER = 3;

const COLUMNS = 92;
const [COLUMN, LINE, MARGIN] = [8.43, 22, 20];
const FONT = `font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14"`;
const FILLS = {
  good: "#3fb950",
  busy: "#d29922",
  bad: "#f85149",
  faint: "#8b949e",
  strong: "#ffffff",
} as const satisfies Record<Style, string>;
const MARKS: Readonly<Record<string, Style>> = { "●": "good", "○": "busy", "✕": "bad", "·": "faint" };

const ENTRY = /^ *(?<at>\d+\.\d) s {2}(?<text>.*)$/;
const ROW = /^(?<zone>\S+) +[●○✕·] (?<revision>\S+)/u;

/** Draws the output of `npm start -- --once`; throws if it has no complete rollout. */
export function drawAnimation(printed: string): string {
  const { zones, messages, seconds } = readRecording(printed);
  const total = BEFORE + seconds + AFTER;
  const rows = [...zones.values()];
  const times = [...new Set([...rows.flat(), ...messages].map(({ at }) => at))].toSorted((a, b) => a - b);
  const titles = times.map((at) => ({ at, text: titleAt(at, seconds) }));
  const tracks = [
    drawTrack(titles, 0, total, drawTitle),
    ...rows.map((moments, index) => drawTrack(moments, 2 + index, total, drawRow(revisionOf(moments.at(-1))))),
    drawTrack(messages, 3 + rows.length, total, drawMessage),
  ];
  const [width, height] = [COLUMNS * COLUMN + 2 * MARGIN, (5 + rows.length) * LINE + 2 * MARGIN];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${round(width)} ${height}" width="${round(width)}" height="${height}">
<title>A rollout of three zones in the embedded cluster: one zone after the other, pod by pod</title>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g ${FONT} fill="${FILLS.faint}">
${tracks.join("\n")}
</g>
</svg>
`;
}

function readRecording(printed: string): Recording {
  const zones = new Map<string, Moment[]>();
  const messages: Moment[] = [{ at: 0, text: "all zones are updated and ready" }];
  let start = 0;
  for (const line of printed.split("\n")) {
    if (line.includes("the rollout begins")) start = BEFORE;
    const duration = /^Rolled out .* in (?<seconds>\d+\.\d) s$/.exec(line)?.groups?.["seconds"];
    if (duration !== undefined) return { zones, messages, seconds: Number(duration) };
    const { at = "", text = "" } = ENTRY.exec(line)?.groups ?? {};
    const zone = ROW.exec(text)?.groups?.["zone"];
    const moment = { at: start === 0 ? 0 : start + Number(at), text };
    if (zone !== undefined) zones.set(zone, [...(zones.get(zone) ?? []).filter(isBefore(moment)), moment]);
    else if (text !== "" && start > 0)
      messages.splice(0, messages.length, ...messages.filter(isBefore(moment)), moment);
  }
  throw new Error("no complete rollout was printed");
}

const isBefore =
  ({ at }: Moment) =>
  (other: Moment): boolean =>
    other.at < at;

function titleAt(at: number, seconds: number): string {
  const passed = Math.min(Math.max(0, at - BEFORE), seconds).toFixed(1);
  return at < BEFORE
    ? "ready"
    : at >= BEFORE + seconds
      ? `updated and ready   ${passed} s`
      : `rolling out   ${passed} s`;
}

/**
 * Each moment is an element that is visible only during its time. Without animation, the middle one is
 * visible.
 */
function drawTrack(
  moments: readonly Moment[],
  line: number,
  total: number,
  draw: (text: string, y: number) => string,
): string {
  const y = MARGIN + line * LINE + 15;
  return moments
    .map(({ at, text }, index) => {
      const end = moments[index + 1]?.at ?? total;
      const shown = at <= total / 2 && total / 2 < end ? "visible" : "hidden";
      const steps: readonly (readonly [value: string, from: number])[] = [
        ...(at > 0 ? [["hidden", 0] as const] : []),
        ["visible", at],
        ...(end < total ? [["hidden", end] as const] : []),
      ];
      const values = steps.map(([value]) => value).join(";");
      const keyTimes = steps.map(([, from]) => round(from / total, 4)).join(";");
      const animate = `<animate attributeName="visibility" calcMode="discrete" dur="${round(total)}s" repeatCount="indefinite" values="${values}" keyTimes="${keyTimes}"/>`;
      return `<g visibility="${shown}">${animate}${draw(text, y)}</g>`;
    })
    .join("\n");
}

function drawTitle(text: string, y: number): string {
  const fill = text.startsWith("rolling") ? FILLS.busy : FILLS.good;
  return write("group ingester", 0, y, FILLS.strong) + write(text, "group ingester   ".length, y, fill);
}

const revisionOf = (moment: Moment | undefined): string => ROW.exec(moment?.text ?? "")?.groups?.["revision"] ?? "";

/**
 * Places every word at its column, as marks may be wider than a column. Pods of the new revision are
 * highlighted.
 */
const drawRow =
  (updated: string) =>
  (text: string, y: number): string =>
    [...text.matchAll(/\S+(?: \S+)*/gu)]
      .map(({ 0: cell, index }) => {
        const style = MARKS[cell.charAt(0)];
        if (style === undefined) return write(cell, index, y, FILLS.strong);
        const label = cell.slice(2);
        return (
          write(cell.charAt(0), index, y, FILLS[style]) +
          write(label, index + 2, y, label.startsWith(updated) ? FILLS.strong : undefined)
        );
      })
      .join("");

function drawMessage(text: string, y: number): string {
  return wrap([{ text }], COLUMNS)
    .map((line, index) => write(line.map((span) => span.text).join(""), 0, y + index * LINE))
    .join("");
}

function write(text: string, column: number, y: number, fill?: string): string {
  const x = round(MARGIN + column * COLUMN);
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(" ", "\u00A0");
  return `<text x="${x}" y="${y}"${fill === undefined ? "" : ` fill="${fill}"`}>${escaped}</text>`;
}

const round = (value: number, digits = 1): number => Number(value.toFixed(digits));
