/**
 * The README's picture: what the demonstration printed of its rollout, as an SVG that plays it in a loop.
 *
 *   printed lines -> tracks (the title, a zone's row, the news) of texts, each with its time -> one element a text, shown for its time
 */
import type { Style } from "./picture.ts";
import { wrap } from "./screen.ts";

/** A text, and from when on it is shown, in seconds from the start of the animation. */
interface Moment {
  readonly at: number;
  readonly text: string;
}

interface Recording {
  /** By name of the zone. */
  readonly zones: ReadonlyMap<string, readonly Moment[]>;
  readonly news: readonly Moment[];
  /** Seconds that the rollout took. */
  readonly seconds: number;
}

/** Stillness before the rollout and after it, in seconds. */
const BEFORE = 1;
const AFTER = 3;

const COLUMNS = 92;
const [COLUMN, LINE, MARGIN] = [8.43, 22, 20];
const FONT = `font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14"`;
const FILLS = { good: "#3fb950", busy: "#d29922", bad: "#f85149", faint: "#8b949e", strong: "#ffffff" } as const satisfies Record<
  Style,
  string
>;
const MARKS: Readonly<Record<string, Style>> = { "●": "good", "○": "busy", "✕": "bad", "·": "faint" };

const ENTRY = /^ *(?<at>\d+\.\d) s {2}(?<text>.*)$/;
const ROW = /^(?<zone>\S+) +[●○✕·] (?<revision>\S+)/u;

/** Draws what `npm start -- --once` printed; throws if there is no complete rollout in it. */
export function drawAnimation(printed: string): string {
  const { zones, news, seconds } = readRecording(printed);
  const total = BEFORE + seconds + AFTER;
  const rows = [...zones.values()];
  const times = [...new Set([...rows.flat(), ...news].map(({ at }) => at))].toSorted((a, b) => a - b);
  const titles = times.map((at) => ({ at, text: titleAt(at, seconds) }));
  const tracks = [
    drawTrack(titles, 0, total, drawTitle),
    ...rows.map((moments, place) => drawTrack(moments, 2 + place, total, drawRow(revisionOf(moments.at(-1))))),
    drawTrack(news, 3 + rows.length, total, drawNews),
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
  const news: Moment[] = [{ at: 0, text: "all zones are updated and ready" }];
  let start = 0;
  for (const line of printed.split("\n")) {
    if (line.includes("the rollout begins")) start = BEFORE;
    const over = /^Rolled out .* in (?<seconds>\d+\.\d) s$/.exec(line)?.groups?.["seconds"];
    if (over !== undefined) return { zones, news, seconds: Number(over) };
    const { at = "", text = "" } = ENTRY.exec(line)?.groups ?? {};
    const zone = ROW.exec(text)?.groups?.["zone"];
    const moment = { at: start === 0 ? 0 : start + Number(at), text };
    if (zone !== undefined) zones.set(zone, [...(zones.get(zone) ?? []).filter(isBefore(moment)), moment]);
    else if (text !== "" && start > 0) news.splice(0, news.length, ...news.filter(isBefore(moment)), moment);
  }
  throw new Error("no complete rollout was printed");
}

const isBefore =
  ({ at }: Moment) =>
  (earlier: Moment): boolean =>
    earlier.at < at;

function titleAt(at: number, seconds: number): string {
  const passed = Math.min(Math.max(0, at - BEFORE), seconds).toFixed(1);
  return at < BEFORE ? "ready" : at >= BEFORE + seconds ? `updated and ready   ${passed} s` : `rolling out   ${passed} s`;
}

/** Each moment as an element that is hidden but for its time; players that show no animation show the one in the middle. */
function drawTrack(moments: readonly Moment[], line: number, total: number, draw: (text: string, y: number) => string): string {
  const y = MARGIN + line * LINE + 15;
  return moments
    .map(({ at, text }, place) => {
      const end = moments[place + 1]?.at ?? total;
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

/** Every word in its column, whatever width the font gives to the marks; pods of the new revision stand out. */
const drawRow =
  (updated: string) =>
  (text: string, y: number): string =>
    [...text.matchAll(/\S+(?: \S+)*/gu)]
      .map(({ 0: cell, index }) => {
        const style = MARKS[cell.charAt(0)];
        if (style === undefined) return write(cell, index, y, FILLS.strong);
        const words = cell.slice(2);
        return (
          write(cell.charAt(0), index, y, FILLS[style]) + write(words, index + 2, y, words.startsWith(updated) ? FILLS.strong : undefined)
        );
      })
      .join("");

function drawNews(text: string, y: number): string {
  return wrap([{ text }], COLUMNS)
    .map((line, place) => write(line.map((span) => span.text).join(""), 0, y + place * LINE))
    .join("");
}

function write(text: string, column: number, y: number, fill?: string): string {
  const x = round(MARGIN + column * COLUMN);
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(" ", "\u00A0");
  return `<text x="${x}" y="${y}"${fill === undefined ? "" : ` fill="${fill}"`}>${escaped}</text>`;
}

const round = (value: number, digits = 1): number => Number(value.toFixed(digits));
