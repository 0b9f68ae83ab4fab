/** What `kubectl get` shows of each kind: one list of columns a resource. */
import { dig, fieldsOf, listOf, plainText } from "../objects.ts";
import type { KubeObject } from "../objects.ts";
import type { Served } from "../registry.ts";
import { customColumns } from "./custom.ts";
import { firstSeen, info, involved, lastSeen, nodeAddress, nodeStatus } from "./cells.ts";
import { ageOf } from "./duration.ts";
import { podGates, podReady, podRestarts, podStatus } from "./pod.ts";

export type Cell = (object: KubeObject, now: number) => unknown;

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  /** Above 0: only with `-o wide`. */
  readonly priority: number;
  readonly cell: Cell;
}

const column = (name: string, cell: Cell, priority = 0, type = "string", format = ""): Column => ({
  name,
  type,
  format,
  description: name,
  priority,
  cell,
});
const wide = (name: string, cell: Cell): Column => column(name, cell, 1);
/** The text at a path, "<none>" where there is none. */
const at =
  (...path: string[]): Cell =>
  (object) =>
    plainText(dig(object, ...path)) || "<none>";
const number =
  (...path: string[]): Cell =>
  (object) =>
    Number(dig(object, ...path) ?? 0);

const name = column("Name", ({ metadata }) => metadata.name, 0, "string", "name");
export const age = column("Age", ({ metadata }, now) => ageOf(metadata.creationTimestamp, now));
const containers = (...path: string[]): Column[] =>
  ["name", "image"].map((field) =>
    wide(field === "name" ? "Containers" : "Images", (object) =>
      listOf(dig(object, ...path, "containers"))
        .map((one) => dig(one, field))
        .join(","),
    ),
  );
const selector = (...path: string[]): Column =>
  wide(
    "Selector",
    (object) =>
      Object.entries(fieldsOf(dig(object, ...path)))
        .map(([key, value]) => `${key}=${String(value)}`)
        .join(",") || "<none>",
  );
const outOf = (ready: readonly string[], wanted: readonly string[]): Cell => {
  return (object) => `${Number(dig(object, ...ready) ?? 0)}/${Number(dig(object, ...wanted) ?? 0)}`;
};

const replicaSetLike: readonly Column[] = [
  name,
  column("Desired", number("spec", "replicas")),
  column("Current", number("status", "replicas")),
  column("Ready", number("status", "readyReplicas")),
  age,
];

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
    column("Ready", outOf(["status", "readyReplicas"], ["spec", "replicas"])),
    age,
    ...containers("spec", "template", "spec"),
  ],
  "deployments.apps": [
    name,
    column("Ready", outOf(["status", "readyReplicas"], ["spec", "replicas"])),
    column("Up-to-date", number("status", "updatedReplicas")),
    column("Available", number("status", "availableReplicas")),
    age,
    ...containers("spec", "template", "spec"),
    selector("spec", "selector", "matchLabels"),
  ],
  "replicasets.apps": replicaSetLike,
  "controllerrevisions.apps": [
    name,
    column("Controller", (object) => {
      const owner = object.metadata.ownerReferences?.find((one) => one.controller);
      const group = owner?.apiVersion.split("/")[0];
      return owner ? `${owner.kind.toLowerCase()}.${group}/${owner.name}` : "<none>";
    }),
    column("Revision", number("revision")),
    age,
  ],
  nodes: [
    name,
    column("Status", nodeStatus),
    column("Roles", () => "<none>"),
    age,
    column("Version", info("kubeletVersion")),
    wide("Internal-IP", nodeAddress("InternalIP")),
    wide("External-IP", nodeAddress("ExternalIP")),
    wide("OS-Image", info("osImage")),
    wide("Kernel-Version", info("kernelVersion")),
    wide("Container-Runtime", info("containerRuntimeVersion")),
  ],
  namespaces: [name, column("Status", at("status", "phase")), age],
  events: [
    column("Last Seen", lastSeen),
    column("Type", (event) => event["type"] ?? ""),
    column("Reason", (event) => event["reason"] ?? ""),
    column("Object", involved),
    wide("Subobject", (event) => dig(event, "involvedObject", "fieldPath") ?? ""),
    wide("Source", (event) => dig(event, "source", "component") ?? event["reportingComponent"] ?? ""),
    column("Message", (event) => plainText(event["message"]).trim()),
    wide("First Seen", (event, now) => ageOf(firstSeen(event), now)),
    wide("Count", (event) => Number(dig(event, "series", "count") ?? event["count"] ?? 1)),
    wide("Name", ({ metadata }) => metadata.name),
  ],
  services: [
    name,
    column("Type", at("spec", "type")),
    column("Cluster-IP", at("spec", "clusterIP")),
    column("External-IP", at("spec", "externalName")),
    column(
      "Port(s)",
      (object) =>
        listOf(dig(object, "spec", "ports"))
          .map((port) => `${String(dig(port, "port"))}/${plainText(dig(port, "protocol"), "TCP")}`)
          .join(",") || "<none>",
    ),
    age,
    selector("spec", "selector"),
  ],
  configmaps: [name, column("Data", (object) => Object.keys(fieldsOf(object["data"])).length), age],
  secrets: [name, column("Type", at("type")), column("Data", (object) => Object.keys(fieldsOf(object["data"])).length), age],
  "leases.coordination.k8s.io": [name, column("Holder", (lease) => dig(lease, "spec", "holderIdentity") ?? ""), age],
  "poddisruptionbudgets.policy": [
    name,
    column("Min Available", (object) => plainText(dig(object, "spec", "minAvailable"), "N/A")),
    column("Max Unavailable", (object) => plainText(dig(object, "spec", "maxUnavailable"), "N/A")),
    column("Allowed Disruptions", number("status", "disruptionsAllowed")),
    age,
  ],
  "validatingwebhookconfigurations.admissionregistration.k8s.io": [
    name,
    column("Webhooks", (object) => listOf(object["webhooks"]).length),
    age,
  ],
  "mutatingwebhookconfigurations.admissionregistration.k8s.io": [
    name,
    column("Webhooks", (object) => listOf(object["webhooks"]).length),
    age,
  ],
  "customresourcedefinitions.apiextensions.k8s.io": [name, column("Created At", ({ metadata }) => metadata.creationTimestamp, 0, "date")],
  "roles.rbac.authorization.k8s.io": [name, column("Created At", ({ metadata }) => metadata.creationTimestamp, 0, "date")],
  "clusterroles.rbac.authorization.k8s.io": [name, column("Created At", ({ metadata }) => metadata.creationTimestamp, 0, "date")],
};

const OTHERS: readonly Column[] = [name, age];

export function columnsOf(kind: Served): readonly Column[] {
  if (kind.custom && kind.custom.columns.length > 0) return [name, ...customColumns(kind.custom.columns)];
  return COLUMNS[kind.resource] ?? OTHERS;
}
