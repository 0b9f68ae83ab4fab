/**
 * A kind whose definition may not be installed. Without it a capability is off, which is no error:
 *
 *   on --the API server does not know the kind--> off, one log line --read again later--> off, or on with another line
 */
import type { Clock } from "../clock.ts";
import { hasCode } from "../errors.ts";
import type { Log } from "../log.ts";

interface OptionalKindFacts {
  /** The capability that is off without it, in the plural. */
  readonly capability: string;
  /** The definition that may be missing, for the log. */
  readonly definition: string;
}

interface OptionalKindOptions extends OptionalKindFacts {
  /** Milliseconds after which a missing kind is read again. */
  readonly againAfterMs: number;
}

interface Tools {
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
}

export function createOptionalKind({ againAfterMs, ...facts }: OptionalKindOptions, { clock, log }: Tools) {
  const note = announceKind(facts, log);
  /** The time when it was found missing; undefined if it is not missing. */
  let missingAt: number | undefined;
  return {
    /** True from the time when it was found missing until it is found. */
    isMissing: (): boolean => missingAt !== undefined,
    /**
     * Resolves with the result of `read`, or with undefined if the kind is missing: then without a call for a while.
     * Rejects with any error of `read` but `NotFound`.
     */
    async read<T>(read: () => Promise<T>): Promise<T | undefined> {
      if (missingAt !== undefined && clock.monotonic() - missingAt < againAfterMs) return undefined;
      try {
        const found = await read();
        missingAt = undefined;
        note(true);
        return found;
      } catch (error) {
        if (!hasCode(error, "NotFound")) throw error;
        missingAt = clock.monotonic();
        note(false);
        return undefined;
      }
    },
  };
}

/** Logs each change, for a kind that is read every time. It counts as installed before the first call. */
export function announceKind({ capability, definition }: OptionalKindFacts, log: Log): (isFound: boolean) => void {
  let wasFound = true;
  return (isFound) => {
    if (isFound !== wasFound)
      log.info(isFound ? `${capability} are on` : `${capability} are off: ${definition} is not installed`);
    wasFound = isFound;
  };
}
