/** What a kubelet reports of its node, as a pure function: what others say of the node stays. */
import { dig, listOf, textOf, timestamp } from "../objects.ts";

interface NodeReport {
  /** Unknown: the node controller has not heard of the kubelet. */
  readonly ready: "True" | "False" | "Unknown";
  /** That of the last report if it is left out. */
  readonly bootId?: string;
  /** Milliseconds since the epoch, by the clock of who reports. */
  readonly now: number;
}

/** The status of the Node. A condition's time changes only with its status. */
export function reportNode(node: unknown, { ready, bootId, now }: NodeReport): object {
  const conditions = listOf(dig(node, "status", "conditions"));
  const before = conditions.find((one) => dig(one, "type") === "Ready");
  const time = timestamp(now);
  const since = dig(before, "status") === ready ? textOf(dig(before, "lastTransitionTime")) : undefined;
  const condition = {
    type: "Ready",
    status: ready,
    reason: "Simulated",
    message: "",
    lastHeartbeatTime: time,
    lastTransitionTime: since ?? time,
  };
  return {
    ...(dig(node, "status") as object | undefined),
    conditions: [condition, ...conditions.filter((one) => one !== before)],
    nodeInfo: bootId === undefined ? dig(node, "status", "nodeInfo") : { bootID: bootId },
  };
}
