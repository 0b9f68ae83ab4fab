/** The report of a drill as text. */
import type { Display, Tone } from "../../cli/output/text.ts";
import { formatTable, wrapWords, type Cell } from "../../cli/output/table.ts";
import { shortDuration } from "../../infra/duration.ts";
import type { DrillVerdict, Row } from "./judge.ts";

export interface Report {
  readonly run: string;
  readonly namespace: string;
  readonly image: string;
  readonly seconds: number;
  readonly promises: readonly Row[];
  /** Why something may not have been seen, a sentence each: Zonewise's reconciler, if it is installed and does not tick. */
  readonly notes: readonly string[];
}

const TONES: Readonly<Record<DrillVerdict, Tone>> = { held: "good", "did not hold": "bad", "not seen": "waiting" };
/** The number of breaks shown for a promise; --json has all. */
const MAX_TOLD = 3;
const COLUMNS = 80;

export function renderReport({ run, namespace, seconds, promises, notes }: Report, display: Display): string {
  const width = (): number => Math.min(display.width?.() ?? COLUMNS, COLUMNS);
  const rows = promises.map(({ promise, tried, verdict, seen }): Cell[] => [
    promise,
    tried,
    { text: verdict, tone: TONES[verdict] },
    seen,
  ]);
  const table = formatTable(["PROMISED", "TRIED", "VERDICT", "SEEN"], rows, { ...display, width });
  const broken = promises.flatMap(({ promise, broken }) => {
    const more = broken.length > MAX_TOLD ? [`and ${broken.length - MAX_TOLD} more`] : [];
    return [...broken.slice(0, MAX_TOLD), ...more].map((text) => `${promise}: ${text}`);
  });
  const held = promises.filter(({ verdict }) => verdict === "held").length;
  const sum = `${held} of ${promises.length} promises held: ${run} in ${namespace}, ${shortDuration(seconds * 1000)}`;
  const lines = [...broken, ...notes.map((note) => `note: ${note}`)].flatMap((text) =>
    wrapWords(text, width() - 2).map((line, i) => `${i === 0 ? "" : "  "}${line}\n`),
  );
  return `${table}${lines.length > 0 ? `\n${lines.join("")}` : ""}\n${sum}\n`;
}
