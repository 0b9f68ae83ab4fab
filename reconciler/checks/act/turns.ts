/**
 * Turns of the questions in a round: 16 are in flight at most, and the one that is overdue longest comes next.
 * Endpoints that do not answer must not delay the others, nor the others them: questions whose last answer was an
 * error take 8 of the places at most, and the others 12.
 */
import { cancelled } from "../../../infra/deadline.ts";
import type { Urgency } from "../check.ts";

export interface Turns {
  /** Waits for a turn; dispose of the result to end it. Rejects with `Cancelled` once `signal` fires. */
  take(urgency: Urgency, signal: AbortSignal): Promise<Disposable>;
}

const IN_FLIGHT = 16;
const MAX_REGULAR = 12;
const MAX_TROUBLED = 8;

interface Waiting extends Urgency {
  readonly enter: () => void;
}

export function createTurns(): Turns {
  const waiting = new Set<Waiting>();
  let regular = 0;
  let troubled = 0;

  const hasRoom = ({ isTroubled }: Urgency): boolean =>
    regular + troubled < IN_FLIGHT && (isTroubled ? troubled < MAX_TROUBLED : regular < MAX_REGULAR);

  function count({ isTroubled }: Urgency, by: number): void {
    if (isTroubled) troubled += by;
    else regular += by;
  }

  function admit(): void {
    let next: Waiting | undefined;
    for (const one of waiting) if (hasRoom(one) && (!next || one.dueAt < next.dueAt)) next = one;
    if (!next) return;
    waiting.delete(next);
    count(next, 1);
    next.enter();
  }

  return {
    async take(urgency, signal) {
      await new Promise<void>((resolve, reject) => {
        if (signal.aborted) return reject(cancelled(signal));
        const giveUp = (): void => {
          waiting.delete(own);
          reject(cancelled(signal));
        };
        const enter = (): void => {
          signal.removeEventListener("abort", giveUp);
          resolve();
        };
        const own: Waiting = { ...urgency, enter };
        waiting.add(own);
        signal.addEventListener("abort", giveUp, { once: true });
        if (hasRoom(own)) admit();
      });
      return {
        [Symbol.dispose]() {
          count(urgency, -1);
          admit();
        },
      };
    },
  };
}
