/** How large a regular expression becomes once it is compiled, told from its text alone. */

// Escapes and classes are one token each, so that what looks like a repetition inside them is none.
const TOKEN =
  /\\Q[^]*?(?:\\E|$)|\\[pP](?:\{[^}]*\}|[^])|\\x\{[^}]*\}|\\[^]|\[\^?\]?(?:\[:\^?\w*:\]|\\[^]|[^\]\\])*\]|\{(?<least>0|[1-9]\d*)(?:,(?<most>0|[1-9]\d*)?)?\}|[^]/g;

/**
 * An upper bound, in instructions, of what compiling `pattern` makes; takes time by the pattern's length alone.
 * A repetition counts its operand as often as it may repeat, groups within groups included.
 */
export function boundProgramSize(pattern: string): number {
  const around: number[] = [];
  // Instructions of the innermost open group, and of what a repetition that follows would repeat.
  let group = 0;
  let operand = 0;
  for (const { 0: token, groups } of pattern.matchAll(TOKEN)) {
    const before = operand;
    if (token === "(") {
      around.push(group);
      group = 0;
      operand = 0;
    } else if (token === ")") {
      operand = group + 3;
      group = (around.pop() ?? 0) + operand;
    } else if (groups?.["least"] !== undefined) {
      operand = (before + 1) * Math.max(1, Number(groups["most"] || groups["least"]));
      group += operand - before;
    } else if (token === "*" || token === "+" || token === "?" || token === "|") {
      operand += 2;
      group += 2;
    } else {
      operand = token.startsWith("\\Q") ? token.length : 1;
      group += operand;
    }
  }
  return around.reduce((sum, size) => sum + size, group);
}
