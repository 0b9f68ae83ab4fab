/** Tables as kubectl prints them: headings in capitals, columns two blanks apart. */
import type { Style, Tone } from "./style.ts";

/** A cell: its text, or with a tone. */
export type Cell = string | { readonly text: string; readonly tone: Tone };

const GAP = "  ";

const textOf = (cell: Cell): string => (typeof cell === "string" ? cell : cell.text);

/** The lines of the table, each with its line break; "" without rows. */
export function formatTable(headings: readonly string[], rows: readonly (readonly Cell[])[], style: Style): string {
  if (rows.length === 0) return "";
  const all: readonly (readonly Cell[])[] = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => textOf(row[column] ?? "").length)));
  const last = headings.length - 1;
  const show = (cell: Cell, column: number): string => {
    const text = column === last ? textOf(cell) : textOf(cell).padEnd(widths[column] ?? 0);
    return typeof cell === "string" ? text : style(cell.tone, text);
  };
  return all.map((row) => `${row.map(show).join(GAP).trimEnd()}\n`).join("");
}
