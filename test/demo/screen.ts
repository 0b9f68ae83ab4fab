/** Writes what happens, line after line. */
export interface Screen {
  /** Writes the rows that differ from the last ones, and a message once after a printed line, each after `time`. */
  readonly show: (rows: readonly string[], message: string, time: string) => void;
  readonly print: (...lines: readonly string[]) => void;
}

export function createScreen(write: (text: string) => unknown): Screen {
  let written: readonly string[] = [];
  let sentence = "";
  const said = new Set([""]);
  return {
    show(rows, message, time) {
      sentence = message;
      const news = [...(said.has(sentence) ? [] : [sentence]), ...rows.filter((row, i) => row !== written[i])];
      for (const line of news) write(`${time.padStart(7)}  ${line}\n`);
      said.add(sentence);
      written = rows;
    },
    print(...lines) {
      write(lines.map((line) => `${line}\n`).join(""));
      said.clear();
      said.add("").add(sentence);
    },
  };
}
