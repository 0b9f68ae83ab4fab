import { createSlots } from "../slots.ts";
import type { Call, Cluster, Query } from "./cluster.ts";
import type { Resource } from "./resources.ts";

/**
 * The same cluster with at most `atOnce` lists in flight, over all callers. A list counts from its first request until
 * it ends or its reader stops: an open list takes a connection, and a share of the API server. A list that waits has
 * not started, so its deadline does not run.
 */
export function limitLists(cluster: Cluster, atOnce: number): Cluster {
  const slots = createSlots(atOnce);
  return {
    ...cluster,
    async *list<T>(resource: Resource<T>, query: Query, call?: Call) {
      using _slot = await slots.take(call?.signal);
      yield* cluster.list(resource, query, call);
    },
  };
}
