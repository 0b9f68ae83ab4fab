/** What a watch shows: a terminal the newest state in place, a log a line a change, a program a document a change. */
import type { Session, TerminalSize } from "../session.ts";

export interface Frame {
  /** For people at a terminal. */
  readonly table: () => string;
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
    update({ table, lines, document }: Frame): void {
      const text = isDrawn ? fit(table(), io.size?.()) : lines();
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
function fit(text: string, size: TerminalSize | undefined): string {
  if (!size) return text;
  const lines = text.split("\n").slice(0, -1);
  const most = Math.max(2, size.rows - 1);
  const shown =
    lines.length > most ? [...lines.slice(0, most - 1), `… ${lines.length - most + 1} more lines: --watch=false shows them`] : lines;
  return shown.map((line) => `${clip(line, size.columns)}\n`).join("");
}

// eslint-disable-next-line no-control-regex
const COLOUR = /(\u001B\[\d+m)/;

/** The line without what is beyond the edge; colours take no place, and those that are on are switched off. */
function clip(line: string, columns: number): string {
  let left = Math.max(1, columns);
  const parts = line.split(COLOUR).map((part, i) => {
    if (i % 2 === 1) return part;
    const kept = part.slice(0, left);
    left -= kept.length;
    return kept;
  });
  return parts.join("");
}
