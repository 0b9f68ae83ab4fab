/** Events as client-go's recorder writes them: the same once more counts up, and one object gets 25 at once, then one every 5 minutes. */
import type { Clock } from "../clock.ts";
import { timestamp, type KubeObject } from "../objects.ts";
import type { Store } from "../store.ts";

export type Recorder = (about: KubeObject, reason: string, message: string) => void;

const BURST = 25;
const REFILL_MS = 300_000;

interface Known {
  tokens: number;
  at: number;
  /** Event name by reason and message. */
  readonly names: Map<string, string>;
}

/** Records events of type Normal in the name of `component`. */
export function recordEvents(store: Store, clock: Clock, component: string): Recorder {
  const knownByUid = new Map<string, Known>();
  let serial = 0;
  return (about, reason, message) => {
    const now = clock.now();
    const known = knownByUid.get(about.metadata.uid) ?? { tokens: BURST, at: now, names: new Map<string, string>() };
    knownByUid.set(about.metadata.uid, known);
    known.tokens = Math.min(BURST, known.tokens + (now - known.at) / REFILL_MS);
    known.at = now;
    if (known.tokens < 1) return;
    known.tokens -= 1;
    const { name, namespace, uid, resourceVersion } = about.metadata;
    const time = timestamp(now);
    const key = `${reason}/${message}`;
    const earlier = store.get("events", namespace, known.names.get(key) ?? "");
    if (earlier) return void store.update("events", { ...earlier, count: Number(earlier["count"]) + 1, lastTimestamp: time });
    serial += 1;
    const eventName = `${name}.${(now * 1000 + (serial % 1000)).toString(16)}`;
    known.names.set(key, eventName);
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
