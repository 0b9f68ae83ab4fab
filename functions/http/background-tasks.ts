/**
 * Work that goes on after an answer, such as the cancellation of a preparation: the process ends only when it is done.
 */
export interface BackgroundTasks {
  readonly track: <T>(task: Promise<T>) => Promise<T>;
  /** Resolves once every tracked task has ended. */
  readonly settled: () => Promise<void>;
}

export function createBackgroundTasks(): BackgroundTasks {
  const tasks = new Set<Promise<unknown>>();
  return {
    track: (task) => {
      tasks.add(task);
      const forget = (): void => void tasks.delete(task);
      task.then(forget, forget);
      return task;
    },
    settled: async () => {
      while (tasks.size > 0) await Promise.allSettled(tasks);
    },
  };
}
