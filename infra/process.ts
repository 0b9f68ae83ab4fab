/** The life cycle of a process: a signal stops it, and its last log line gives the error that ended it, if any. */
import { systemClock } from "./clock.ts";
import { hasCode } from "./errors.ts";
import { createLog, type Log, stdout } from "./log.ts";

export const END_SIGNALS = ["SIGTERM", "SIGINT"] as const;

/**
 * Runs an entry to its exit code; `stop` fires at SIGTERM or SIGINT. If `main` rejects, the message `failure` is logged
 * with the error, and the exit code is 1, or 2 for `BadConfiguration`.
 */
export async function runEntry(failure: string, main: (stop: AbortSignal) => Promise<number>): Promise<never> {
  const stop = new AbortController();
  for (const signal of END_SIGNALS)
    process.on(signal, () => {
      if (!stop.signal.aborted) createOwnLog().info("asked to stop; ending after the current step", { signal });
      stop.abort(signal);
    });
  const exitCode = await main(stop.signal).catch((error: unknown) => tellFailure(failure, error));
  return await end(exitCode);
}

/** Ends the process after an error, as `runEntry` does. */
export async function giveUp(failure: string, error: unknown): Promise<never> {
  return await end(tellFailure(failure, error));
}

/**
 * Ends the process once its log is written. Without it, idle connections to the API server would keep the process
 * alive.
 */
export async function end(exitCode: number): Promise<never> {
  await stdout.flush();
  process.exit(exitCode);
}

/** Its format and level are read here, as there may be no valid configuration. */
function createOwnLog(): Log {
  const { LOG_FORMAT: format, LOG_LEVEL: level = "" } = process.env;
  const isQuiet = level === "warn" || level === "error";
  return createLog({
    level: isQuiet ? level : "info",
    format: format === "logfmt" ? "logfmt" : "json",
    write: stdout.write,
    now: () => new Date(systemClock.now()),
  });
}

/** A bad configuration is fully described by its message. */
function tellFailure(failure: string, error: unknown): 1 | 2 {
  const badConfiguration = hasCode(error, "BadConfiguration");
  createOwnLog().error(badConfiguration ? error.message : failure, badConfiguration ? {} : { error });
  return badConfiguration ? 2 : 1;
}
