/** The defaults that users and Zonewise see, by resource (k8s.io/kubernetes/pkg/apis/<group>/<version>/defaults.go). */
import { dig, fieldsOf, isFields, listOf, put, textOf } from "./objects.ts";
import type { Draft, Fields } from "./objects.ts";

type Fill = (object: Draft) => Draft;

/** Sets each path that has no value yet. */
function fill(defaults: Readonly<Record<string, unknown>>): <T extends Fields>(object: T) => T {
  const entries = Object.entries(defaults).map(([path, value]) => ({ path: path.split("."), value }));
  return (object) => entries.reduce((at, { path, value }) => (dig(at, ...path) === undefined ? put(at, path, value) : at), object);
}

function each(object: Fields, field: string, change: (item: Fields) => Fields): Fields {
  const items = object[field];
  return Array.isArray(items) ? { ...object, [field]: items.map((item: unknown) => (isFields(item) ? change(item) : item)) } : object;
}

const container = (item: Fields): Fields => {
  const image = textOf(item["image"]) ?? "";
  const isMoving = image.endsWith(":latest") || !/[:@][^/]*$/.test(image);
  const filled = fill({
    imagePullPolicy: isMoving ? "Always" : "IfNotPresent",
    resources: {},
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
  })(item);
  return each(filled, "ports", fill({ protocol: "TCP" }));
};

const fillPodSpec = fill({
  dnsPolicy: "ClusterFirst",
  restartPolicy: "Always",
  schedulerName: "default-scheduler",
  securityContext: {},
  terminationGracePeriodSeconds: 30,
});

function podSpec(spec: unknown): Fields {
  return each(each(fillPodSpec(fieldsOf(spec)), "containers", container), "initContainers", container);
}

const template: Fill = (object) => put(object, ["spec", "template", "spec"], podSpec(dig(object, "spec", "template", "spec")));

const lasting = (key: string): Fields => ({ effect: "NoExecute", key, operator: "Exists", tolerationSeconds: 300 });

const livePod = fill({
  "spec.enableServiceLinks": true,
  "spec.preemptionPolicy": "PreemptLowerPriority",
  "spec.priority": 0,
  "spec.serviceAccount": "default",
  "spec.serviceAccountName": "default",
  "spec.tolerations": [lasting("node.kubernetes.io/not-ready"), lasting("node.kubernetes.io/unreachable")],
  "status.phase": "Pending",
  "status.qosClass": "BestEffort",
});

const fillStatefulSet = fill({
  "spec.persistentVolumeClaimRetentionPolicy": { whenDeleted: "Retain", whenScaled: "Retain" },
  "spec.podManagementPolicy": "OrderedReady",
  "spec.replicas": 1,
  "spec.revisionHistoryLimit": 10,
  "spec.updateStrategy.type": "RollingUpdate",
  "status.availableReplicas": 0,
  "status.replicas": 0,
});

const statefulSet: Fill = (object) => {
  const filled = fillStatefulSet(template(object));
  const isRolling = dig(filled, "spec", "updateStrategy", "type") === "RollingUpdate";
  // A RollingUpdate that is asked for without parameters stays without: SetDefaults_StatefulSet.
  const isBare =
    dig(object, "spec", "updateStrategy", "type") !== undefined && dig(object, "spec", "updateStrategy", "rollingUpdate") === undefined;
  return isRolling && !isBare ? fill({ "spec.updateStrategy.rollingUpdate.partition": 0 })(filled) : filled;
};

const webhooks =
  (more: Fields): Fill =>
  (object) =>
    withWebhooks(
      object,
      fill({ failurePolicy: "Fail", matchPolicy: "Equivalent", namespaceSelector: {}, objectSelector: {}, timeoutSeconds: 10, ...more }),
    );

function withWebhooks(object: Draft, change: (webhook: Fields) => Fields): Draft {
  const complete = listOf(object["webhooks"])
    .filter(isFields)
    .map((webhook) => {
      const filled = each(change(webhook), "rules", fill({ scope: "*" }));
      return dig(filled, "clientConfig", "service") ? fill({ "clientConfig.service.port": 443 })(filled) : filled;
    });
  return { ...object, webhooks: complete };
}

const definition: Fill = (object) => {
  const kind = textOf(dig(object, "spec", "names", "kind")) ?? "";
  return fill({
    "spec.conversion": { strategy: "None" },
    "spec.names.listKind": `${kind}List`,
    "spec.names.singular": kind.toLowerCase(),
  })(object);
};

const namespace: Fill = (object) => {
  const labels = { ...object.metadata.labels, "kubernetes.io/metadata.name": object.metadata.name ?? "" };
  return fill({ "spec.finalizers": ["kubernetes"], "status.phase": "Active" })(put(object, ["metadata", "labels"], labels));
};

const DEFAULTS: Readonly<Record<string, Fill>> = {
  "statefulsets.apps": statefulSet,
  "deployments.apps": fill({ "spec.replicas": 1 }),
  "replicasets.apps": fill({ "spec.replicas": 1 }),
  pods: (object) => livePod(put(object, ["spec"], podSpec(object["spec"]))),
  namespaces: namespace,
  "customresourcedefinitions.apiextensions.k8s.io": definition,
  "validatingwebhookconfigurations.admissionregistration.k8s.io": webhooks({}),
  "mutatingwebhookconfigurations.admissionregistration.k8s.io": webhooks({ reinvocationPolicy: "Never" }),
};

/** The object with the defaults of its kind. */
export function withDefaults(resource: string, object: Draft): Draft {
  return DEFAULTS[resource]?.(object) ?? object;
}
