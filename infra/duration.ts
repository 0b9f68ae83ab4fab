/** Durations in the formats of the original: Go's for flags and labels, Prometheus' for some annotations. Pure. */
import { formatTimestamp } from "./timestamp.ts";

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
/**
 * Characters; a longer duration exceeds 292 years unless it has superfluous zeros. Parsing takes time quadratic in the
 * digits.
 */
const MAX_LENGTH = 100;
const PER_MS = 1_000_000n;

/**
 * Milliseconds of a Go duration such as `1m30s`, `-1.5h` or `0`; undefined if the text is none (§0.9a).
 * Exact to the nanosecond; beyond 292 years it is invalid, as in Go, and beyond 100 characters.
 */
export function parseGoDuration(text: string): number | undefined {
  if (text.length > MAX_LENGTH) return undefined;
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
    const term = readTerm(TERM.exec(body)?.groups ?? {});
    if (term === undefined) return undefined;
    sum += term;
    at = TERM.lastIndex;
  }
  return sum;
}

function readTerm({
  whole = "",
  fraction = "",
  unit = "",
}: Readonly<Record<string, string | undefined>>): bigint | undefined {
  const scale = NANOSECONDS[unit];
  if (scale === undefined || whole + fraction === "") return undefined;
  return BigInt(whole || "0") * scale + (BigInt(fraction || "0") * scale) / 10n ** BigInt(fraction.length);
}

const PROMETHEUS =
  /^(?:(?<y>\d+)y)?(?:(?<w>\d+)w)?(?:(?<d>\d+)d)?(?:(?<h>\d+)h)?(?:(?<m>\d+)m)?(?:(?<s>\d+)s)?(?:(?<ms>\d+)ms)?$/;
const SECOND = 1000;
const DAY = 86_400 * SECOND;
const MILLISECONDS: Readonly<Record<string, number>> = {
  y: 365 * DAY,
  w: 7 * DAY,
  d: DAY,
  h: 3600 * SECOND,
  m: 60 * SECOND,
  s: SECOND,
  ms: 1,
};

/**
 * Milliseconds of a Prometheus duration such as `1h30m`, `2w` or `0`; undefined if the text is none (§0.9b). Beyond 292
 * years it is invalid, as in Go, and beyond 100 characters.
 */
export function parsePrometheusDuration(text: string): number | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  if (text === "0") return 0;
  const units = text === "" ? undefined : PROMETHEUS.exec(text)?.groups;
  if (!units) return undefined;
  const ms = Object.entries(units).reduce(
    (sum, [unit, count]) => sum + Number(count ?? 0) * (MILLISECONDS[unit] ?? 0),
    0,
  );
  return ms <= Number(LARGEST / PER_MS) ? ms : undefined;
}

const LARGEST_FIRST = Object.entries(MILLISECONDS).filter(([unit]) => ["d", "h", "m", "s"].includes(unit));

/**
 * A duration for messages, in its two largest units from days to seconds: `2h10m`, `45s`, `12h`; less than a second is
 * `0s`.
 */
export function shortDuration(ms: number): string {
  let rest = Math.max(0, ms);
  const parts: string[] = [];
  for (const [unit, size] of LARGEST_FIRST) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (parts.length > 0 || count > 0) parts.push(count > 0 ? `${count}${unit}` : "");
    if (parts.length === 2) break;
  }
  return parts.join("") || "0s";
}

/**
 * `12h0m0s`, `1m30s`, `1.5s`, `250ms`, `0s`: as Go prints it, to the millisecond, as users search for the original's
 * messages.
 */
export function formatGoDuration(ms: number): string {
  const size = Math.abs(Math.trunc(ms));
  const sign = ms < 0 && size > 0 ? "-" : "";
  if (size === 0) return "0s";
  if (size < 1000) return `${sign}${size}ms`;
  const seconds = (size % 60_000) / 1000;
  const minutes = Math.floor(size / 60_000) % 60;
  const hours = Math.floor(size / 3_600_000);
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}s` : `${sign}${seconds}s`;
}

/**
 * `2h10m ago, 9h50m left of 12h`: a wait of `ms` that began at `since`, all in milliseconds. If `since` is in the
 * future, it is named.
 */
export function describeWait(since: number, ms: number, now: number): string {
  if (since > now) return `at ${formatTimestamp(since)}, which is in the future, and ${shortDuration(ms)} are needed`;
  return `${shortDuration(now - since)} ago, ${shortDuration(ms - (now - since))} left of ${shortDuration(ms)}`;
}
