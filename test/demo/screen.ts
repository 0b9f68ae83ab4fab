/** Shows pictures: on a terminal redrawn in place, otherwise as one line per change. */
import { styleText } from "node:util";
import { wrapWords } from "../../cli/output/table.ts";
import { textOf, type Line, type Picture, type Style } from "./picture.ts";

interface Output {
  readonly write: (text: string) => unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

export interface Screen {
  /** Replaces the previous picture; without a terminal, writes the changed lines, each after `time`. */
  readonly show: (picture: Picture, time: string) => void;
  /** Writes permanent lines above the picture. */
  readonly print: (...lines: readonly string[]) => void;
}

const FORMATS = { good: "green", busy: "yellow", bad: "red", faint: "dim", strong: "bold" } as const satisfies Record<
  Style,
  string
>;

export function createScreen(output: Output, colours: boolean): Screen {
  return output.isTTY ? createTerminalScreen(output, colours) : createPlainScreen(output);
}

/** Writes the rows that differ from the last picture, and each message once after a printed line. */
function createPlainScreen(output: Output): Screen {
  let written: readonly string[] = [];
  let sentence = "";
  const said = new Set([""]);
  return {
    show({ rows, message }, time) {
      const lines = rows.map(textOf);
      sentence = textOf(message);
      const news = [...(said.has(sentence) ? [] : [sentence]), ...lines.filter((line, i) => line !== written[i])];
      for (const line of news) output.write(`${time.padStart(7)}  ${line}\n`);
      said.add(sentence);
      written = lines;
    },
    print(...lines) {
      output.write(lines.map((line) => `${line}\n`).join(""));
      said.clear();
      said.add("").add(sentence);
    },
  };
}

const EMPTY: Line = [];
const CLEAR_LINE = "\u001B[K";
const CLEAR_BELOW = "\u001B[J";
const up = (lines: number): string => (lines > 0 ? `\u001B[${lines}F` : "");

function createTerminalScreen(output: Output, colours: boolean): Screen {
  let drawn: readonly string[] = [];

  const draw = (above: readonly string[], lines: readonly string[]): void => {
    const text = [...above, ...lines].map((line) => `${line}${CLEAR_LINE}\n`).join("");
    output.write(`${up(drawn.length)}${text}${CLEAR_BELOW}`);
    drawn = lines;
  };

  return {
    show({ title, rows, message }) {
      // A terminal of unknown size reports 0.
      const columns = output.columns || 80;
      const lines = [EMPTY, title, EMPTY, ...rows, EMPTY, ...wrap(message, columns)]
        .slice(0, Math.max(1, (output.rows || 24) - 1))
        .map((line) => paint(clip(line, columns), colours));
      if (lines.length !== drawn.length || lines.some((line, index) => line !== drawn[index])) draw([], lines);
    },
    // Commands stay whole: a reader copies them.
    print: (...lines) =>
      draw(
        lines.flatMap((line) => (line.startsWith("    ") ? [line] : wrapWords(line, output.columns || 80))),
        drawn,
      ),
  };
}

function paint(line: Line, colours: boolean): string {
  return line
    .map(({ text, style }) => (colours && style ? styleText(FORMATS[style], text, { validateStream: false }) : text))
    .join("");
}

/** Truncates a line: a line that the terminal wraps would take more rows than are redrawn. */
export function clip(line: Line, columns: number): Line {
  let remaining = columns;
  return line.map((span) => {
    const text = span.text.slice(0, Math.max(0, remaining));
    remaining -= span.text.length;
    return { ...span, text };
  });
}

/** Breaks each span between words. */
const wrap = (line: Line, columns: number): Line[] =>
  line.flatMap(({ text, ...rest }) => wrapWords(text, columns).map((part) => [{ ...rest, text: part }]));
