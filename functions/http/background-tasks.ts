/** What handlers still do: some take things back after they were answered for. */
export interface BackgroundTasks {
  readonly track: <T>(task: Promise<T>) => Promise<T>;
  /** Resolves once nothing is left to do. */
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
