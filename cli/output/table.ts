/** Tables as kubectl prints them: headings in capitals, columns two blanks apart. */
import { isCommand } from "../../reconciler/model/remedy.ts";
import { type Display, plain, type Tone } from "./text.ts";

/** A cell: its text, or with a tone. */
export type Cell = string | { readonly text: string; readonly tone: Tone };

export interface Column {
  readonly heading: string;
  /**
   * If a terminal is too narrow, the columns with the lowest ranks are shown; columns without a rank always are.
   */
  readonly rank?: number;
  /** It is left out if all its cells are empty. */
  readonly isOptional?: true;
}

const GAP = "  ";
/** Least width of a sentence at the end of a row: other columns are left out to keep it. */
const SENTENCE = 30;

const textOf = (cell: Cell | undefined): string => (typeof cell === "object" ? cell.text : (cell ?? ""));

/** Columns with their cells. */
interface Sheet {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
}

/** The table with the namespace before each row, if the rows are of several namespaces. */
export function formatByNamespace(
  columns: readonly Column[],
  rows: readonly { readonly namespace: string; readonly cells: readonly Cell[] }[],
  display: Display,
): string {
  const isMixed = new Set(rows.map(({ namespace }) => namespace)).size > 1;
  return formatTable(
    [...(isMixed ? ["NAMESPACE"] : []), ...columns],
    rows.map(({ namespace, cells }) => [...(isMixed ? [namespace] : []), ...cells]),
    display,
  );
}

/**
 * The lines of the table, each with its line break; "" without rows. It fits the terminal: columns that are empty or
 * matter less are left out, and the last one is wrapped between words.
 */
export function formatTable(
  headings: readonly (string | Column)[],
  rows: readonly (readonly Cell[])[],
  display: Display,
): string {
  if (rows.length === 0) return "";
  const columns = headings.map((one): Column => (typeof one === "string" ? { heading: one } : one));
  const most = display.width?.() ?? Infinity;
  const filled = columns.map(({ isOptional }, i) => !isOptional || rows.some((row) => textOf(row[i]) !== ""));
  const keep = <T>(all: readonly T[]): T[] => all.filter((_, i) => filled[i]);
  const { columns: shown, rows: cells } = fit({ columns: keep(columns), rows: rows.map(keep) }, most);
  const widths = shown.map((column, i) => widthOf(column, cells, i));
  const last = shown.length - 1;
  const indent = widths.slice(0, last).reduce((sum, one) => sum + one + GAP.length, 0);
  const all: readonly (readonly Cell[])[] = [shown.map(({ heading }) => heading), ...cells];
  const lines = all.flatMap((row) => {
    const start = row.slice(0, last).map((cell, i) => paint(display, cell, textOf(cell).padEnd(widths[i] ?? 0)) + GAP);
    const [first = "", ...more] = wrapWords(textOf(row[last]), most - indent).map((part) =>
      paint(display, row[last], part),
    );
    return [start.join("") + first, ...more.map((part) => " ".repeat(indent) + part)];
  });
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

/**
 * A table whose columns must all be shown. If the terminal has no room for it, each row becomes several lines: its
 * first cell, and below it the others with their headings.
 */
export function formatRecords(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  display: Display,
): string {
  const most = display.width?.() ?? Infinity;
  const least = formatTable(headings, rows, { style: plain });
  if (least.split("\n").every((line) => line.length <= most)) return formatTable(headings, rows, display);
  const [, ...names] = headings.map((heading) => heading.toLowerCase());
  const indent = Math.max(...names.map(({ length }) => length)) + GAP.length * 2;
  return rows
    .map(([first, ...cells]) => {
      const lines = names.map((name, i) => {
        const text = wrapAfter(textOf(cells[i]), indent, display);
        return `${GAP}${name.padEnd(indent - GAP.length)}${paint(display, cells[i], text)}\n`;
      });
      return `${paint(display, first, textOf(first))}\n${lines.join("")}`;
    })
    .join("");
}

const paint = ({ style }: Pick<Display, "style">, cell: Cell | undefined, text: string): string =>
  typeof cell === "object" ? style(cell.tone, text) : text;

const widthOf = ({ heading }: Column, rows: Sheet["rows"], i: number): number =>
  Math.max(heading.length, ...rows.map((row) => textOf(row[i]).length));

/** The last column needs no more than its longest word, if that is more than a sentence gets. */
function leastWidthOf({ columns, rows }: Sheet, i: number): number {
  const column = columns[i] ?? { heading: "" };
  if (i < columns.length - 1) return widthOf(column, rows, i);
  const words = rows.map((row) =>
    Math.max(
      ...textOf(row[i])
        .split(" ")
        .map(({ length }) => length),
    ),
  );
  return Math.max(column.heading.length, Math.min(widthOf(column, rows, i), Math.max(SENTENCE, ...words)));
}

function fit(sheet: Sheet, most: number): Sheet {
  const { columns, rows } = sheet;
  const least = columns.map((_, i) => leastWidthOf(sheet, i) + GAP.length);
  // The last column has no gap after it.
  let left = most + GAP.length;
  if (least.reduce((sum, one) => sum + one) <= left) return sheet;
  const isEmpty = (i: number): boolean => rows.every((row) => textOf(row[i]) === "");
  const byRank = columns.map((_, i) => i).toSorted((a, b) => rankOf(columns[a]) - rankOf(columns[b]));
  const chosen = new Set<number>();
  for (const i of byRank) {
    const fits = columns[i]?.rank === undefined || (!isEmpty(i) && (least[i] ?? 0) <= left);
    if (!fits) continue;
    chosen.add(i);
    left -= least[i] ?? 0;
  }
  const keep = <T>(all: readonly T[]): T[] => all.filter((_, i) => chosen.has(i));
  return { columns: keep(columns), rows: rows.map((row) => keep(row)) };
}

const rankOf = (column: Column | undefined): number => column?.rank ?? 0;

/**
 * The text broken between words, with `indent` blanks before each further line; the first line leaves the same room for
 * text before it.
 */
export const wrapAfter = (text: string, indent: number, { width }: Display): string =>
  wrapWords(text, (width?.() ?? Infinity) - indent).join(`\n${" ".repeat(indent)}`);

/**
 * A remedy with `indent` blanks before each further line. Its sentences are wrapped, but its commands are not: a terminal
 * copies a command on one line in one piece.
 */
export function layRemedy(remedy: string, indent: number, display: Display): string {
  const lines = remedy.split("\n").map((line, i) => {
    if (!isCommand(line)) return wrapAfter(line, indent, display);
    return i === 0 ? `\n${" ".repeat(indent)}${line}` : `${GAP}${line}`;
  });
  return lines.join(`\n${" ".repeat(indent)}`);
}

/**
 * The text in lines of at most `most` characters, broken between words, each with the indent of the first; a longer
 * word gets its own line.
 */
export function wrapWords(text: string, most: number): string[] {
  const words = text.trimStart();
  const indent = text.slice(0, text.length - words.length);
  const lines: string[] = [];
  for (const word of words.split(" ")) {
    const longer = `${lines.at(-1) ?? indent}${lines.length === 0 ? "" : " "}${word}`;
    if (lines.length === 0 || longer.length <= most) lines.splice(-1, 1, longer);
    else lines.push(indent + word);
  }
  return lines;
}
