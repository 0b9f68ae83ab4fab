/** Ages as kubectl prints them (apimachinery's duration.HumanDuration). */
const S = 1000;
const M = 60 * S;
const H = 60 * M;
const D = 24 * H;
const Y = 365 * D;

/** `ms` may be negative by a second; more is an invalid age. */
export function humanDuration(ms: number): string {
  const whole = (unit: number, below = Infinity): number => Math.floor((ms % below) / unit);
  const two = (a: number, aUnit: string, b: number, bUnit: string): string => (b === 0 ? `${a}${aUnit}` : `${a}${aUnit}${b}${bUnit}`);
  if (ms < -S) return "<invalid>";
  if (ms < 0) return "0s";
  if (ms < 2 * M) return `${whole(S)}s`;
  if (ms < 10 * M) return two(whole(M), "m", whole(S, M), "s");
  if (ms < 3 * H) return `${whole(M)}m`;
  if (ms < 8 * H) return two(whole(H), "h", whole(M, H), "m");
  if (ms < 2 * D) return `${whole(H)}h`;
  if (ms < 8 * D) return two(whole(D), "d", whole(H, D), "h");
  if (ms < 2 * Y) return `${whole(D)}d`;
  if (ms < 8 * Y) return two(whole(Y), "y", whole(D, Y), "d");
  return `${whole(Y)}y`;
}

/** The age of an RFC 3339 time; "<unknown>" for none. */
export function ageOf(time: unknown, now: number): string {
  return typeof time === "string" ? humanDuration(now - Date.parse(time)) : "<unknown>";
}
