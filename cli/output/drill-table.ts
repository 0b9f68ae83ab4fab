/** The report of a drill as text. */
import { shortDuration } from "../../infra/duration.ts";
import type { DrillVerdict, Row } from "../drill/judge.ts";
import { formatTable, wrapWords, type Cell } from "./table.ts";
import type { Display, Tone } from "./style.ts";

export interface Report {
  readonly run: string;
  readonly namespace: string;
  /** The drill has made the namespace, and removes it. */
  readonly made: boolean;
  readonly image: string;
  readonly seconds: number;
  /** Pods of the installation that it has killed. */
  readonly killed: number;
  readonly promises: readonly Row[];
}

const TONES: Readonly<Record<DrillVerdict, Tone>> = { held: "good", "did not hold": "bad", "not seen": "waiting" };
/** The number of breaks shown for a promise; -o json has all. */
const MAX_TOLD = 3;
const COLUMNS = 80;

export function renderReport({ run, namespace, seconds, killed, promises }: Report, display: Display): string {
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
  const kills = killed > 0 ? `, ${killed} ${killed === 1 ? "pod" : "pods"} of the installation killed` : "";
  const sum = `${held} of ${promises.length} promises held: ${run} in ${namespace}, ${shortDuration(seconds * 1000)}${kills}`;
  const lines = broken.flatMap((text) =>
    wrapWords(text, width() - 2).map((line, i) => `${i === 0 ? "" : "  "}${line}\n`),
  );
  return `${table}${lines.length > 0 ? `\n${lines.join("")}` : ""}\n${sum}\n`;
}
