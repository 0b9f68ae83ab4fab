/**
 * Work that goes on after an answer, such as the cancellation of a preparation: the process ends only when it is done.
 */
export interface BackgroundTasks {
  readonly track: <T>(task: Promise<T>) => Promise<T>;
  /** Resolves once every tracked task has ended. */
  readonly settled: () => Promise<void>;
}

/**
 * Counts tasks instead of keeping them: a Set that changes with each request keeps what it held until the next full
 * garbage collection, as V8 links the tables that it outgrows.
 */
export function createBackgroundTasks(): BackgroundTasks {
  const now = { running: 0, waiting: [] as (() => void)[] };
  const ended = (): void => {
    if (--now.running === 0) for (const resume of now.waiting.splice(0)) resume();
  };
  return {
    track: (task) => {
      now.running++;
      task.then(ended, ended);
      return task;
    },
    settled: async () => {
      while (now.running > 0) await new Promise<void>((resolve) => now.waiting.push(resolve));
    },
  };
}
