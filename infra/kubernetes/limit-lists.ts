import { createSlots } from "../slots.ts";
import type { Call, Cluster, Query } from "./cluster.ts";
import type { Resource } from "./resources.ts";

/**
 * The same cluster with so many pages of lists in flight at most, over all callers: a page of pods may have megabytes.
 */
export function limitLists(cluster: Cluster, atOnce: number): Cluster {
  const slots = createSlots(atOnce);
  return {
    ...cluster,
    async *list<T>(resource: Resource<T>, query: Query, call?: Call) {
      const pages = cluster.list(resource, query, call)[Symbol.asyncIterator]();
      for (;;) {
        const page = await takePage(pages, call);
        if (page.done) return;
        yield page.value;
      }
    },
  };

  async function takePage<T>(pages: AsyncIterator<T>, call: Call | undefined): Promise<IteratorResult<T>> {
    using _slot = await slots.take(call?.signal);
    return await pages.next();
  }
}
