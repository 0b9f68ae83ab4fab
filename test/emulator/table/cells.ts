/** The cells of nodes and events (kubernetes/pkg/printers/internalversion/printers.go). */
import { dig, listOf, plainText, textOf } from "../objects.ts";
import type { KubeObject } from "../objects.ts";
import type { Cell } from "./columns.ts";
import { ageOf } from "./duration.ts";

export function nodeStatus(node: KubeObject): string {
  const ready = listOf(dig(node, "status", "conditions")).find((one) => dig(one, "type") === "Ready");
  const words = { True: "Ready", False: "NotReady" } as const;
  const word = words[dig(ready, "status") as keyof typeof words] ?? "Unknown";
  return dig(node, "spec", "unschedulable") === true ? `${word},SchedulingDisabled` : word;
}

export function nodeAddress(type: string): Cell {
  return (node) =>
    textOf(
      dig(
        listOf(dig(node, "status", "addresses")).find((one) => dig(one, "type") === type),
        "address",
      ),
    ) ?? "<none>";
}

export const info = (field: string): Cell => {
  return (node) => textOf(dig(node, "status", "nodeInfo", field)) || (field === "kubeletVersion" ? "" : "<unknown>");
};

export function involved(event: KubeObject): string {
  return `${plainText(dig(event, "involvedObject", "kind")).toLowerCase()}/${plainText(dig(event, "involvedObject", "name"))}`;
}

export function lastSeen(event: KubeObject, now: number): string {
  return ageOf(dig(event, "series", "lastObservedTime") ?? event["lastTimestamp"] ?? firstSeen(event), now);
}

export const firstSeen = (event: KubeObject): unknown => event["firstTimestamp"] ?? event["eventTime"];
