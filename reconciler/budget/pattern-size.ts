/** Estimates the compiled size of a regular expression from its text alone. */

// Escapes and classes are one token each, so that what looks like a repetition inside them is none.
const TOKEN =
  /\\Q[^]*?(?:\\E|$)|\\[pP](?:\{[^}]*\}|[^])|\\x\{[^}]*\}|\\[^]|\[\^?\]?(?:\[:\^?\w*:\]|\\[^]|[^\]\\])*\]|\{(?<least>0|[1-9]\d*)(?:,(?<most>0|[1-9]\d*)?)?\}|[^]/g;

/**
 * An upper bound of the compiled size of `pattern`, in instructions; its cost depends on the pattern's length alone. A
 * repetition counts its operand as often as it may repeat, groups within groups included.
 */
export function boundProgramSize(pattern: string): number {
  const around: number[] = [];
  // Instructions of the innermost open group, and of the operand of a repetition that follows.
  let group = 0;
  let operand = 0;
  for (const match of pattern.matchAll(TOKEN)) {
    const [token] = match;
    if (token === "(") {
      around.push(group);
      group = 0;
      operand = 0;
    } else if (token === ")") {
      operand = group + 3;
      group = (around.pop() ?? 0) + operand;
    } else {
      const repeated = repeat(match, operand);
      group += repeated === undefined ? sizeOf(token) : repeated - operand;
      operand = repeated ?? sizeOf(token);
    }
  }
  return around.reduce((sum, size) => sum + size, group);
}

/** Instructions of the operand under this operator; undefined if the token is none. */
function repeat({ 0: token, groups }: RegExpExecArray, operand: number): number | undefined {
  const { least, most } = groups ?? {};
  if (least !== undefined) return (operand + 1) * Math.max(1, Number(most || least));
  return ["*", "+", "?", "|"].includes(token) ? operand + 2 : undefined;
}

function sizeOf(token: string): number {
  return token.startsWith("\\Q") ? token.length : 1;
}
