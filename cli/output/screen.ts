/**
 * The output of a watch: on a terminal, the newest state in place; in a log, one line per change; for a program, one
 * document per change.
 */
import type { Session, TerminalSize } from "../session.ts";

export interface Frame {
  /** What a person sees at a terminal. */
  readonly table: () => string;
  /** The table for a terminal that is too low for the whole one: without finished objects. */
  readonly short: () => string;
  /** What a log gets. The text stays the same while nothing changes. */
  readonly lines: () => string;
  /** What a program reads. */
  readonly document: () => string;
}

interface Screen {
  readonly update: (frame: Frame) => void;
}

export function createScreen({ io, output }: Pick<Session, "io" | "output">): Screen {
  const isDrawn = io.isTty && output === "table";
  let height = 0;
  let shown: string | undefined;
  return {
    update({ lines, document, ...frame }: Frame): void {
      const size = io.size?.();
      const text = isDrawn ? fit(frame, size) : lines();
      if (text === shown) return;
      const isFirst = shown === undefined;
      shown = text;
      if (output !== "table") return io.write(output === "yaml" && !isFirst ? `---\n${document()}` : document());
      io.write(isDrawn && height > 0 ? `\u001B[${height}A\u001B[J${text}` : text);
      height = linesOf(text).reduce((sum, line) => sum + rowsOf(line, size?.columns), 0);
    },
  };
}

const linesOf = (text: string): string[] => text.split("\n").slice(0, -1);

/** Fits the table into the terminal: more rows would scroll, and cannot be redrawn. */
function fit({ table, short }: Pick<Frame, "table" | "short">, size: TerminalSize | undefined): string {
  const whole = table();
  if (!size) return whole;
  const most = Math.max(2, size.rows - 1);
  const heightOf = (line: string): number => rowsOf(line, size.columns);
  const isHigh = (all: readonly string[]): boolean => all.reduce((sum, line) => sum + heightOf(line), 0) > most;
  const lines = linesOf(isHigh(linesOf(whole)) ? short() : whole);
  let left = most - 1;
  const kept = isHigh(lines)
    ? lines.slice(
        0,
        lines.findIndex((line) => (left -= heightOf(line)) < 0),
      )
    : lines;
  const cut = lines.length - kept.length;
  const shown = cut > 0 ? [...kept, `… ${cut} more lines: --watch=false shows them`] : kept;
  return shown.map((line) => `${line}\n`).join("");
}

// eslint-disable-next-line no-control-regex
const COLOUR = /(\u001B\[\d+m)/g;

/** The number of terminal rows that a line takes. */
const rowsOf = (line: string, columns = Infinity): number =>
  Math.max(1, Math.ceil(widthOf(line.replaceAll(COLOUR, "")) / columns));

/** Upper bound of the columns that a terminal gives the text: characters of wide scripts take two. */
const widthOf = (text: string): number =>
  Array.from(text).reduce((sum, one) => sum + ((one.codePointAt(0) ?? 0) < 0x1100 || one === "…" ? 1 : 2), 0);
