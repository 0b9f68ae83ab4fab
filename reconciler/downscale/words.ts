/** Times and durations as Go prints them: users search for upstream's messages. */

/** `2026-01-01 00:00:00 +0000 UTC`. */
export function goTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} +0000 UTC`;
}

/** `12h0m0s`, `1m30s`, `1.5s`, `250ms`, `0s`; of what is below a millisecond, nothing. */
export function goDuration(ms: number): string {
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
