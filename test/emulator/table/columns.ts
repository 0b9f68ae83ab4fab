/** What `kubectl get` shows of each kind (kubernetes/pkg/printers/internalversion/printers.go); kinds that are not here show name and age. */

import { dig, isFields, isTrue, listOf, numberOf, plainText, textOf } from "../objects.ts";
import type { KubeObject } from "../objects.ts";
import type { Column as Definition, Served } from "../registry.ts";

type Cell = (object: KubeObject, now: number) => unknown;

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  /** Above 0: only with `-o wide`. */
  readonly priority: number;
  readonly cell: Cell;
}

const column = (name: string, cell: Cell, priority = 0, format = ""): Column => ({
  name,
  type: "string",
  format,
  description: name,
  priority,
  cell,
});
const wide = (name: string, cell: Cell): Column => column(name, cell, 1);
/** The text at a path, "<none>" where there is none. */
const at =
  (...path: string[]) =>
  (object: KubeObject): string =>
    plainText(dig(object, ...path)) || "<none>";

const name = column("Name", ({ metadata }) => metadata.name, 0, "name");
const age = column("Age", ({ metadata }, now) => ageOf(metadata.creationTimestamp, now));

const containersOf = (set: KubeObject): readonly unknown[] => listOf(dig(set, "spec", "template", "spec", "containers"));
const statusesOf = (pod: KubeObject): readonly unknown[] => listOf(dig(pod, "status", "containerStatuses"));

function podReady(pod: KubeObject): string {
  const ready = statusesOf(pod).filter((one) => dig(one, "ready") === true);
  return `${ready.length}/${listOf(dig(pod, "spec", "containers")).length}`;
}

function podStatus(pod: KubeObject): string {
  if (pod.metadata.deletionTimestamp) return "Terminating";
  const waiting = statusesOf(pod).map((one) => textOf(dig(one, "state", "waiting", "reason")));
  return waiting.find(Boolean) ?? plainText(dig(pod, "status", "phase"));
}

function podRestarts(pod: KubeObject): string {
  return String(statusesOf(pod).reduce<number>((sum, one) => sum + (numberOf(dig(one, "restartCount")) ?? 0), 0));
}

function podGates(pod: KubeObject): string {
  const gates = listOf(dig(pod, "spec", "readinessGates")).map((gate) => String(dig(gate, "conditionType")));
  return gates.length === 0 ? "<none>" : `${gates.filter((gate) => isTrue(pod, gate)).length}/${gates.length}`;
}

const COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  pods: [
    name,
    column("Ready", podReady),
    column("Status", podStatus),
    column("Restarts", podRestarts),
    age,
    wide("IP", at("status", "podIP")),
    wide("Node", at("spec", "nodeName")),
    wide("Nominated Node", at("status", "nominatedNodeName")),
    wide("Readiness Gates", podGates),
  ],
  "statefulsets.apps": [
    name,
    column("Ready", (set) => `${Number(dig(set, "status", "readyReplicas") ?? 0)}/${Number(dig(set, "spec", "replicas") ?? 0)}`),
    age,
    wide("Containers", (set) =>
      containersOf(set)
        .map((one) => dig(one, "name"))
        .join(","),
    ),
    wide("Images", (set) =>
      containersOf(set)
        .map((one) => dig(one, "image"))
        .join(","),
    ),
  ],
  nodes: [
    name,
    column(
      "Status",
      (node) => `${isTrue(node, "Ready") ? "Ready" : "NotReady"}${dig(node, "spec", "unschedulable") ? ",SchedulingDisabled" : ""}`,
    ),
    age,
  ],
  events: [
    column("Last Seen", (event, now) => ageOf(event["lastTimestamp"], now)),
    column("Type", at("type")),
    column("Reason", at("reason")),
    column("Object", (event) => `${at("involvedObject", "kind")(event)}/${at("involvedObject", "name")(event)}`.toLowerCase()),
    column("Message", at("message")),
  ],
};

/** Printer columns of custom resources: plain paths such as `.spec.replicas`. */
function customColumn({ jsonPath, ...column }: Definition): Column {
  const path = jsonPath.split(".").slice(1);
  const cell: Cell = (object, now) => {
    const value = dig(object, ...path) ?? null;
    if (column.type === "date" && value !== null) return ageOf(value, now);
    return isFields(value) || Array.isArray(value) ? JSON.stringify(value) : value;
  };
  return { ...column, cell };
}

export function columnsOf(kind: Served): readonly Column[] {
  if (kind.custom && kind.custom.columns.length > 0) return [name, ...kind.custom.columns.map(customColumn)];
  return COLUMNS[kind.resource] ?? [name, age];
}

const S = 1000;
const M = 60 * S;
const H = 60 * M;

/** The age of an RFC 3339 time as kubectl prints it (apimachinery's duration.HumanDuration), up to hours; "<unknown>" for none. */
export function ageOf(time: unknown, now: number): string {
  if (typeof time !== "string") return "<unknown>";
  // Times have whole seconds: what was made in this second may seem to be of the next.
  const ms = Math.max(0, now - Date.parse(time));
  if (ms < 2 * M) return `${Math.floor(ms / S)}s`;
  const seconds = Math.floor((ms % M) / S);
  if (ms < 10 * M && seconds > 0) return `${Math.floor(ms / M)}m${seconds}s`;
  return ms < 3 * H ? `${Math.floor(ms / M)}m` : `${Math.floor(ms / H)}h`;
}
