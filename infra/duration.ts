/** Go's duration grammar, for flags and labels that upstream parses with it. */

const NANOSECONDS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

// U+00B5 and U+03BC are both micro: https://pkg.go.dev/time#ParseDuration
const TERM = /(?<whole>\d*)(?:\.(?<fraction>\d*))?(?<unit>ns|us|µs|μs|ms|s|m|h)/y;
const LARGEST = 2n ** 63n;
const PER_MS = 1_000_000n;

/**
 * Milliseconds of a Go duration such as `1m30s`, `-1.5h` or `0`; undefined when it is none [0.9a].
 * Exact to the nanosecond; beyond 292 years it is invalid, as in Go.
 */
export function parseGoDuration(text: string): number | undefined {
  const negative = text.startsWith("-");
  const body = /^[+-]/.test(text) ? text.slice(1) : text;
  if (body === "0") return 0;
  const size = sumTerms(body);
  if (size === undefined || size > (negative ? LARGEST : LARGEST - 1n)) return undefined;
  const nanoseconds = negative ? -size : size;
  return Number(nanoseconds / PER_MS) + Number(nanoseconds % PER_MS) / Number(PER_MS);
}

function sumTerms(body: string): bigint | undefined {
  let sum = 0n;
  let at = 0;
  while (at < body.length || at === 0) {
    TERM.lastIndex = at;
    const { whole = "", fraction = "", unit = "" } = TERM.exec(body)?.groups ?? {};
    const scale = NANOSECONDS[unit];
    if (scale === undefined || whole + fraction === "") return undefined;
    sum += BigInt(whole || "0") * scale + (BigInt(fraction || "0") * scale) / 10n ** BigInt(fraction.length);
    at = TERM.lastIndex;
  }
  return sum;
}
