/** The pause between ticks. */
import type { TickResult } from "../model/outcome.ts";
import type { RunInput } from "./run-input.ts";

/** Before a check that is due already, as the tick has not reached it. */
const OVERDUE_PAUSE_MS = 1000;

/** Milliseconds to the next tick: the interval, or until a check is due before. */
export function pauseMs(
  { intervalMs, clock }: Pick<RunInput, "intervalMs" | "clock">,
  result: Pick<TickResult, "nextCheckAt"> | undefined,
): number {
  const due = (result?.nextCheckAt ?? Infinity) - clock.now();
  return Math.min(intervalMs, due > 0 ? due : OVERDUE_PAUSE_MS);
}

/** Ends the pause between ticks, which has begun before this check was known. */
export async function wakeWhenDue(
  nextCheckAt: number,
  {
    intervalMs,
    clock,
    wake,
    signal,
  }: Pick<RunInput, "intervalMs" | "clock"> & { readonly wake: () => void; readonly signal: AbortSignal },
): Promise<void> {
  const ms = pauseMs({ intervalMs, clock }, { nextCheckAt });
  if (ms < intervalMs) await clock.sleep(ms, signal).then(wake);
}
