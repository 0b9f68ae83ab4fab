/** What a watch shows: a terminal the newest state in place, a log a line a change, a program a document a change. */
import type { Session, TerminalSize } from "../session.ts";

export interface Frame {
  /** For people at a terminal. */
  readonly table: () => string;
  /** The same where that is higher than the terminal: without what needs nobody. */
  readonly short: () => string;
  /** For logs: equal as long as nothing has changed. */
  readonly lines: () => string;
  /** For programs. */
  readonly document: () => string;
}

export interface Screen {
  readonly update: (frame: Frame) => void;
}

export function createScreen({ io, output }: Pick<Session, "io" | "output">): Screen {
  const isDrawn = io.isTty && output === "table";
  let height = 0;
  let shown: string | undefined;
  return {
    update({ lines, document, ...frame }: Frame): void {
      const text = isDrawn ? fit(frame, io.size?.()) : lines();
      if (text === shown) return;
      const isFirst = shown === undefined;
      shown = text;
      if (output !== "table") return io.write(output === "yaml" && !isFirst ? `---\n${document()}` : document());
      io.write(isDrawn && height > 0 ? `\u001B[${height}A\u001B[J${text}` : text);
      height = text.split("\n").length - 1;
    },
  };
}

/** Longer lines would wrap, and more lines would scroll: neither can be drawn over again. */
function fit({ table, short }: Pick<Frame, "table" | "short">, size: TerminalSize | undefined): string {
  const whole = table();
  if (!size) return whole;
  const most = Math.max(2, size.rows - 1);
  const linesOf = (text: string): string[] => text.split("\n").slice(0, -1);
  const lines = linesOf(linesOf(whole).length > most ? short() : whole);
  const shown =
    lines.length > most
      ? [...lines.slice(0, most - 1), `… ${lines.length - most + 1} more lines: --watch=false shows them`]
      : lines;
  return shown.map((line) => `${clip(line, size.columns)}\n`).join("");
}

// eslint-disable-next-line no-control-regex
const COLOUR = /(\u001B\[\d+m)/;

/**
 * The line without what is beyond the edge, which a last `…` stands for; colours take no place, and those that are on
 * are switched off.
 */
function clip(line: string, columns: number): string {
  const parts = line.split(COLOUR);
  if (widthOf(parts.filter((_, i) => i % 2 === 0).join("")) <= columns) return line;
  let left = columns - 1;
  const kept = parts.map((part, i) =>
    i % 2 === 1
      ? part
      : Array.from(part)
          .filter((one) => (left -= widthOf(one)) >= 0)
          .join(""),
  );
  return `${kept.join("")}…`;
}

/** At most as many columns as a terminal gives the text: signs of wide scripts take two. */
const widthOf = (text: string): number =>
  Array.from(text).reduce((sum, one) => sum + ((one.codePointAt(0) ?? 0) < 0x1100 || one === "…" ? 1 : 2), 0);
