/**
 * A kind whose definition may not be installed. Without it a capability is off, which is no error:
 *
 *   on --the API server does not know the kind--> off, one log line --asked again after a while--> off, or on with another line
 */
import type { Clock } from "../clock.ts";
import { hasCode } from "../errors.ts";
import type { Log } from "../log.ts";

export interface OptionalKindFacts {
  /** What is off without it, in the plural. */
  readonly capability: string;
  /** What is not installed. */
  readonly definition: string;
}

export interface OptionalKindOptions extends OptionalKindFacts {
  /** Milliseconds in which a kind that was missing is not asked for. */
  readonly againAfterMs: number;
}

export interface OptionalKind {
  /** True since it was found missing, until it is found. */
  readonly isMissing: () => boolean;
  /**
   * Resolves with what is read; with undefined if the kind is missing, for a while without a call. Rejects with any
   * error of `read` but `NotFound`.
   */
  readonly read: <T>(read: () => Promise<T>) => Promise<T | undefined>;
}

interface Tools {
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
}

export function createOptionalKind(
  { againAfterMs, ...facts }: OptionalKindOptions,
  { clock, log }: Tools,
): OptionalKind {
  const note = announceKind(facts, log);
  /** Undefined unless it is missing. */
  let missingAt: number | undefined;
  return {
    isMissing: () => missingAt !== undefined,
    async read(read) {
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

/** Logs each change, for a kind that is asked for every time. It counts as installed before the first call. */
export function announceKind({ capability, definition }: OptionalKindFacts, log: Log): (isFound: boolean) => void {
  let wasFound = true;
  return (isFound) => {
    if (isFound !== wasFound)
      log.info(isFound ? `${capability} are on` : `${capability} are off: ${definition} is not installed`);
    wasFound = isFound;
  };
}
