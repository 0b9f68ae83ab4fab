/**
 * Turns of the questions of all rounds: 16 are in flight at most. Namespaces take turns, so that the slow checks of one
 * do not delay those of another; of a namespace the question comes next that is overdue longest. Endpoints that do not answer must not delay the others, nor the others them: questions whose last answer was an
 * error take 8 of the places at most, and the others 12.
 */
import { cancelled } from "../../../infra/deadline.ts";
import type { Urgency } from "../check.ts";

export interface Turns {
  /** Waits for a turn; dispose of the result to end it. Rejects with `Cancelled` once `signal` fires. */
  take(asking: Asking, signal: AbortSignal): Promise<Disposable>;
}

interface Asking extends Urgency {
  readonly namespace: string;
}

const IN_FLIGHT = 16;
const MAX_REGULAR = 12;
const MAX_TROUBLED = 8;

interface Waiting extends Asking {
  readonly enter: () => void;
}

export function createTurns(): Turns {
  /** By namespace; the namespace whose turn is next comes first. */
  const waiting = new Map<string, Set<Waiting>>();
  let regular = 0;
  let troubled = 0;

  const hasRoom = ({ isTroubled }: Urgency): boolean =>
    regular + troubled < IN_FLIGHT && (isTroubled ? troubled < MAX_TROUBLED : regular < MAX_REGULAR);

  function count({ isTroubled }: Urgency, by: number): void {
    if (isTroubled) troubled += by;
    else regular += by;
  }

  function leave(one: Waiting): void {
    const own = waiting.get(one.namespace);
    own?.delete(one);
    if (own?.size === 0) waiting.delete(one.namespace);
  }

  function admit(): void {
    for (const [namespace, own] of waiting) {
      const next = mostOverdue([...own].filter(hasRoom));
      if (!next) continue;
      waiting.delete(namespace);
      waiting.set(namespace, own);
      leave(next);
      count(next, 1);
      return next.enter();
    }
  }

  return {
    async take(asking, signal) {
      await new Promise<void>((resolve, reject) => {
        if (signal.aborted) return reject(cancelled(signal));
        const giveUp = (): void => {
          leave(own);
          reject(cancelled(signal));
        };
        const enter = (): void => {
          signal.removeEventListener("abort", giveUp);
          resolve();
        };
        const own: Waiting = { ...asking, enter };
        const others = waiting.get(asking.namespace) ?? new Set();
        waiting.set(asking.namespace, others.add(own));
        signal.addEventListener("abort", giveUp, { once: true });
        if (hasRoom(own)) admit();
      });
      return {
        [Symbol.dispose]() {
          count(asking, -1);
          admit();
        },
      };
    },
  };
}

function mostOverdue(questions: readonly Waiting[]): Waiting | undefined {
  let next: Waiting | undefined;
  for (const one of questions) if (!next || one.dueAt < next.dueAt) next = one;
  return next;
}
