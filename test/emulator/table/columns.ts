/**
 * The columns of `kubectl get` for each kind (kubernetes/pkg/printers/internalversion/printers.go). Kinds
 * that are not listed have name and age.
 */
import { dig, type Draft, isTrue, listOf, numberOf, plainText, textOf } from "../objects.ts";
import type { Column as Definition, Served } from "../registry.ts";

type Cell = (object: Draft, now: number) => unknown;

const column = (name: string, cell: Cell, priority = 0) => ({
  name,
  type: "string",
  format: name === "Name" ? "name" : "",
  description: name,
  /** Columns above 0 are shown only with `-o wide`. */
  priority,
  cell,
});
type Column = ReturnType<typeof column>;

const textAt = (object: unknown, ...path: string[]): string => plainText(dig(object, ...path)) || "<none>";

const name = column("Name", ({ metadata }) => metadata.name);
const age = column("Age", ({ metadata }, now) => ageOf(metadata.creationTimestamp, now));

const containersOf = (set: Draft): readonly unknown[] => listOf(dig(set, "spec", "template", "spec", "containers"));
const textsOf = (list: readonly unknown[], field: string): string => list.map((one) => textAt(one, field)).join(",");
const statusesOf = (pod: Draft): readonly unknown[] => listOf(dig(pod, "status", "containerStatuses"));

function podReady(pod: Draft): string {
  const ready = statusesOf(pod).filter((one) => dig(one, "ready"));
  return `${ready.length}/${listOf(dig(pod, "spec", "containers")).length}`;
}

function podStatus(pod: Draft): string {
  if (pod.metadata.deletionTimestamp) return "Terminating";
  const waiting = statusesOf(pod).map((one) => textOf(dig(one, "state", "waiting", "reason")));
  return waiting.find(Boolean) ?? plainText(dig(pod, "status", "phase"));
}

function podRestarts(pod: Draft): string {
  return String(statusesOf(pod).reduce<number>((sum, one) => sum + (numberOf(dig(one, "restartCount")) ?? 0), 0));
}

function podGates(pod: Draft): string {
  const gates = listOf(dig(pod, "spec", "readinessGates")).map((gate) => String(dig(gate, "conditionType")));
  return gates.length === 0 ? "<none>" : `${gates.filter((gate) => isTrue(pod, gate)).length}/${gates.length}`;
}

function nodeStatus(node: Draft): string {
  return `${isTrue(node, "Ready") ? "Ready" : "NotReady"}${dig(node, "spec", "unschedulable") ? ",SchedulingDisabled" : ""}`;
}

const COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  pods: [
    name,
    column("Ready", podReady),
    column("Status", podStatus),
    column("Restarts", podRestarts),
    age,
    column("IP", (pod) => textAt(pod, "status", "podIP"), 1),
    column("Node", (pod) => textAt(pod, "spec", "nodeName"), 1),
    column("Nominated Node", () => "<none>", 1),
    column("Readiness Gates", podGates, 1),
  ],
  "statefulsets.apps": [
    name,
    column(
      "Ready",
      (set) => `${Number(dig(set, "status", "readyReplicas") ?? 0)}/${Number(dig(set, "spec", "replicas") ?? 0)}`,
    ),
    age,
    column("Containers", (set) => textsOf(containersOf(set), "name"), 1),
    column("Images", (set) => textsOf(containersOf(set), "image"), 1),
  ],
  nodes: [name, column("Status", nodeStatus), age],
  "cronjobs.batch": [
    name,
    column("Schedule", (job) => textAt(job, "spec", "schedule")),
    column("Timezone", (job) => textAt(job, "spec", "timeZone")),
    column("Suspend", (job) => (dig(job, "spec", "suspend") === true ? "True" : "False")),
    column("Active", (job) => listOf(dig(job, "status", "active")).length),
    column("Last Schedule", (job, now) =>
      dig(job, "status", "lastScheduleTime") ? ageOf(dig(job, "status", "lastScheduleTime"), now) : "<none>",
    ),
    age,
  ],
  events: [
    column("Last Seen", (event, now) => ageOf(event["lastTimestamp"], now)),
    column("Type", (event) => textAt(event, "type")),
    column("Reason", (event) => textAt(event, "reason")),
    column("Object", (event) =>
      `${textAt(event, "involvedObject", "kind")}/${textAt(event, "involvedObject", "name")}`.toLowerCase(),
    ),
    column("Message", (event) => textAt(event, "message")),
  ],
};

/** One step of a JSONPath: a field, or the element of a list that has a field of this value. */
const STEP = /\.([^.[\]]+)|\[\?\(@\.(\w+)=="([^"]*)"\)\]/g;

/** What a path such as `.spec.replicas` or `.status.conditions[?(@.type=="Ready")].status` leads to. */
function valueAt(object: unknown, path: string): unknown {
  let value = object;
  for (const [, key, field = "", wanted] of path.matchAll(STEP))
    value = key === undefined ? listOf(value).find((one) => dig(one, field) === wanted) : dig(value, key);
  return value;
}

/** A printer column of a custom resource. */
function customColumn({ jsonPath, ...column }: Definition): Column {
  const valueOf = (object: Draft): unknown => valueAt(object, plainText(jsonPath));
  return { ...column, cell: column.type === "date" ? (object, now) => ageOf(valueOf(object), now) : valueOf };
}

export function columnsOf({ resource, custom }: Served): readonly Column[] {
  if (custom && custom.columns.length > 0) return [name, ...custom.columns.map(customColumn)];
  return COLUMNS[resource] ?? [name, age];
}

/**
 * The age of an RFC 3339 time as kubectl prints it (duration.HumanDuration), up to hours; "<unknown>" without
 * a time.
 */
function ageOf(time: unknown, now: number): string {
  if (typeof time !== "string") return "<unknown>";
  // Timestamps have whole seconds, so a new object may seem to be from the future.
  const seconds = Math.max(0, Math.floor((now - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10 && seconds % 60 > 0) return `${minutes}m${seconds % 60}s`;
  return minutes < 180 ? `${minutes}m` : `${Math.floor(minutes / 60)}h`;
}
