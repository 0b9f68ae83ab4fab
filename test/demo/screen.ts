/** Puts pictures on a terminal, redrawn in place, or into a pipe, a line a change. */
import { styleText } from "node:util";
import { textOf, type Line, type Picture, type Style } from "./picture.ts";

export interface Output {
  readonly write: (text: string) => unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

export interface Screen {
  /** Shows the picture in the place of the one before; `time` leads the lines where there is no such place. */
  readonly show: (picture: Picture, time: string) => void;
  /** Writes lines that stay, above the picture. */
  readonly print: (...lines: readonly string[]) => void;
}

const FORMATS = { good: "green", busy: "yellow", bad: "red", faint: "dim", strong: "bold" } as const satisfies Record<Style, string>;

export function createScreen(output: Output, colours: boolean): Screen {
  return output.isTTY ? createTerminalScreen(output, colours) : createPlainScreen(output);
}

/** Only what differs from what was last said of the same row, or as news. */
function createPlainScreen(output: Output): Screen {
  let said: readonly string[] = [];
  return {
    show({ rows, news }, time) {
      const lines = [news, ...rows].map(textOf);
      for (const [place, line] of lines.entries()) if (line !== "" && line !== said[place]) output.write(`${time.padStart(7)}  ${line}\n`);
      said = lines;
    },
    print: (...lines) => void output.write(lines.map((line) => `${line}\n`).join("")),
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
    show({ title, rows, news }) {
      // A terminal that does not know its size says 0.
      const columns = output.columns || 80;
      const lines = [EMPTY, title, EMPTY, ...rows, EMPTY, ...wrap(news, columns)]
        .slice(0, Math.max(1, (output.rows || 24) - 1))
        .map((line) => paint(clip(line, columns), colours));
      if (lines.length !== drawn.length || lines.some((line, place) => line !== drawn[place])) draw([], lines);
    },
    print: (...lines) => draw(lines, drawn),
  };
}

function paint(line: Line, colours: boolean): string {
  return line.map(({ text, style }) => (colours && style ? styleText(FORMATS[style], text, { validateStream: false }) : text)).join("");
}

/** A line that wrapped by itself would take more rows than were counted. */
export function clip(line: Line, columns: number): Line {
  let room = columns;
  return line.map((span) => {
    const text = span.text.slice(0, Math.max(0, room));
    room -= span.text.length;
    return { ...span, text };
  });
}

/** Breaks each span between words. */
export function wrap(line: Line, columns: number): Line[] {
  return line.flatMap(({ text, ...rest }) => {
    const lines: string[] = [];
    for (const word of text.split(" ")) {
      const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
      if (lines.length === 0 || longer.length > columns) lines.push(word);
      else lines[lines.length - 1] = longer;
    }
    return lines.map((part) => [{ ...rest, text: part }]);
  });
}
