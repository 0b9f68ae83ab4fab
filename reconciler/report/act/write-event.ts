/** Writes Events. */
import { hasCode } from "../../../infra/errors.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { events, type Event } from "../../../infra/kubernetes/resources.ts";

/** Creates the Event, or increases the count of an Event of the same name. Throws the error of the API server. */
export async function writeEvent(cluster: Cluster, event: Event, call: Call): Promise<void> {
  const { namespace = "", name = "" } = event.metadata;
  try {
    await cluster.create(events, { namespace, body: event }, call);
  } catch (error) {
    if (!hasCode(error, "AlreadyExists")) throw error;
    const earlier = await cluster.get(events, { namespace, name }, call);
    const again = {
      count: (earlier.count ?? 1) + 1,
      ...(event.message && { message: event.message }),
      ...(event.lastTimestamp && { lastTimestamp: event.lastTimestamp }),
    };
    await cluster.patch(events, { namespace, name, type: "merge", body: again }, call);
  }
}
