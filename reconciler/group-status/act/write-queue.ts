/**
 * Writes RolloutGroups beside the ticks: one write at a time for each, at most one a second, and four at a time over
 * all.
 */
import type { Clock } from "../../../infra/clock.ts";
import { hasCode } from "../../../infra/errors.ts";
import type { Log } from "../../../infra/log.ts";
import { logUnwritten } from "../../../infra/kubernetes/write-status.ts";
import { createSlots } from "../../../infra/slots.ts";
import { compareStatus, type Difference } from "../decide-status.ts";
import type { Entry } from "./entry.ts";
import { isStale } from "./known-groups.ts";
import { type GroupWriter, removeGroup, writeGroup } from "./write-group.ts";

interface WriteQueue {
  /** Writes the wanted status, unless a write is under way: that goes on until the latest is stored. */
  readonly write: (entry: Entry) => void;
  /** Removes the object; `onRemoved` is called once it is gone. */
  readonly remove: (entry: Entry, onRemoved: () => void) => void;
  /** Resolves once nothing is under way, without further pauses; never rejects. */
  readonly flush: () => Promise<void>;
}

export interface WriteQueueOptions extends GroupWriter {
  readonly clock: Clock;
  readonly log: Log;
  /** Called when somebody else has changed a RolloutGroup. */
  readonly onChange: () => void;
  /** Called when this write is forbidden: to the ServiceAccount, by a quota, or in a namespace that is being deleted. */
  readonly onForbidden: (entry: Entry) => void;
}

const PAUSE_MS = 1000;
const AT_A_TIME = 4;
/** Another client that writes all the time must not keep us busy: the next tick tries again. */
const MAX_ATTEMPTS = 3;

export function createWriteQueue(options: WriteQueueOptions): WriteQueue {
  const { clock, log, onChange, onForbidden } = options;
  const slots = createSlots(AT_A_TIME);
  const ending = new AbortController();
  const running = new Set<Promise<void>>();

  async function keepWritten(entry: Entry): Promise<void> {
    for (let failures = 0; failures < MAX_ATTEMPTS && differenceOf(entry) !== "none";) {
      const pauseMs = entry.writtenAt + PAUSE_MS - clock.monotonic();
      if (pauseMs > 0) await clock.sleep(pauseMs, ending.signal);
      using _slot = await slots.take();
      const isWritten = await writeGroup(entry, options);
      entry.writtenAt = clock.monotonic();
      if (isWritten) continue;
      failures++;
      onChange();
    }
  }

  function start(entry: Entry, work: () => Promise<void>): void {
    if (entry.busy) return;
    entry.busy = true;
    const run = work()
      .catch((error: unknown) => explain(error, entry))
      .finally(() => {
        entry.busy = false;
        running.delete(run);
        if (isStale(entry)) onChange();
      });
    running.add(run);
  }

  function explain(error: unknown, entry: Entry): void {
    const { namespace, name } = entry;
    if (hasCode(error, "Forbidden")) onForbidden(entry);
    logUnwritten(log, "the status of a rollout group could not be written", { namespace, group: name, error });
  }

  return {
    write: (entry) => start(entry, () => keepWritten(entry)),
    remove: (entry, onRemoved) => start(entry, () => removeGroup(entry, options).then(onRemoved)),
    async flush() {
      ending.abort();
      await Promise.all(running);
    },
  };
}

/** How far the stored status is from the wanted one. */
export function differenceOf({ stored, wanted }: Entry): Difference {
  return wanted === undefined ? "none" : compareStatus(stored?.status ?? {}, wanted);
}
