/** The cells of a pod's row (kubernetes/pkg/printers/internalversion/printers.go, printPod). */
import { dig, listOf, numberOf, textOf } from "../objects.ts";
import type { KubeObject } from "../objects.ts";

export function podReady(pod: KubeObject): string {
  const ready = listOf(dig(pod, "status", "containerStatuses")).filter((one) => dig(one, "ready") === true);
  return `${ready.length}/${listOf(dig(pod, "spec", "containers")).length}`;
}

export function podRestarts(pod: KubeObject): string {
  return String(
    listOf(dig(pod, "status", "containerStatuses")).reduce<number>((sum, one) => sum + (numberOf(dig(one, "restartCount")) ?? 0), 0),
  );
}

function isTrue(pod: KubeObject, type: string): boolean {
  return listOf(dig(pod, "status", "conditions")).some((one) => dig(one, "type") === type && dig(one, "status") === "True");
}

export function podStatus(pod: KubeObject): string {
  if (pod.metadata.deletionTimestamp) return dig(pod, "status", "reason") === "NodeLost" ? "Unknown" : "Terminating";
  let reason = textOf(dig(pod, "status", "reason")) || textOf(dig(pod, "status", "phase")) || "";
  for (const status of listOf(dig(pod, "status", "containerStatuses")).toReversed()) {
    const waiting = textOf(dig(status, "state", "waiting", "reason"));
    const terminated = textOf(dig(status, "state", "terminated", "reason"));
    if (waiting) reason = waiting;
    else if (terminated) reason = terminated;
  }
  if (reason === "Completed" && isTrue(pod, "Ready")) return "Running";
  return reason;
}

export function podGates(pod: KubeObject): string {
  const gates = listOf(dig(pod, "spec", "readinessGates")).map((gate) => String(dig(gate, "conditionType")));
  if (gates.length === 0) return "<none>";
  return `${gates.filter((gate) => isTrue(pod, gate)).length}/${gates.length}`;
}
