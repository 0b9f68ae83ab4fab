/** Events as client-go's recorder writes them: the same once more counts up. */
import type { Clock } from "../clock.ts";
import { timestamp, type KubeObject } from "../objects.ts";
import type { Store } from "../store.ts";

export type Recorder = (about: KubeObject, reason: string, message: string) => void;

/** Records events of type Normal in the name of `component`. */
export function recordEvents(store: Store, clock: Clock, component: string): Recorder {
  /** Event name by the object's uid, reason and message. */
  const names = new Map<string, string>();
  let serial = 0;
  return (about, reason, message) => {
    const now = clock.now();
    const { name, namespace, uid, resourceVersion } = about.metadata;
    const time = timestamp(now);
    const key = `${uid}/${reason}/${message}`;
    const earlier = store.get("events", namespace, names.get(key) ?? "");
    if (earlier) return void store.update("events", { ...earlier, count: Number(earlier["count"]) + 1, lastTimestamp: time });
    serial += 1;
    const eventName = `${name}.${(now * 1000 + (serial % 1000)).toString(16)}`;
    names.set(key, eventName);
    store.create("events", {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name: eventName, ...(namespace && { namespace }) },
      involvedObject: { apiVersion: about.apiVersion, kind: about.kind, name, namespace, uid, resourceVersion },
      reason,
      message,
      source: { component },
      firstTimestamp: time,
      lastTimestamp: time,
      eventTime: null,
      count: 1,
      type: "Normal",
      reportingComponent: component,
      reportingInstance: "",
    });
  };
}
