/** A realistic list of pods as an API server sends it: pods of a ring-based database, with managedFields. */
import { createHash } from "node:crypto";

const CONTAINERS = ["ingester", "config-reloader"];

/**
 * The pod of an ordinal as JSON: about 8 kB, half of which are managedFields of kubelet and StatefulSet
 * controller.
 */
export function podJson(ordinal: number): string {
  return JSON.stringify({
    metadata: { ...metadata(ordinal), managedFields: managedFields() },
    spec: { ...podSpec(ordinal), nodeName: `node-${ordinal % 200}` },
    status: {
      phase: "Running",
      conditions: CONDITIONS.map((type) => ({ type, status: "True", lastProbeTime: null, lastTransitionTime: STAMP })),
      hostIP: `10.0.0.${ordinal % 200}`,
      podIP: `10.${ordinal % 250}.${(ordinal >> 8) % 250}.7`,
      startTime: STAMP,
      containerStatuses: CONTAINERS.map((name) => ({
        name,
        state: { running: { startedAt: STAMP } },
        lastState: {},
        ready: true,
        restartCount: 0,
        image: `docker.io/grafana/${name}:2.14.0`,
        imageID: `docker.io/grafana/${name}@sha256:${digest(name)}`,
        containerID: `containerd://${digest(`${name}${ordinal}`)}`,
        started: true,
      })),
      qosClass: "Burstable",
    },
  });
}

/** The spec of such a pod. */
export function podSpec(ordinal: number) {
  return {
    containers: CONTAINERS.map((name) => container(name, ordinal)),
    volumes: VOLUMES.map((name) => ({ name, configMap: { name, defaultMode: 420 } })),
    schedulerName: "default-scheduler",
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 1200,
    serviceAccountName: "ingester",
    tolerations: ["not-ready", "unreachable"].map((key) => ({
      key: `node.kubernetes.io/${key}`,
      operator: "Exists",
      effect: "NoExecute",
    })),
  };
}

/** The managedFields of such a pod. */
export function managedFields() {
  const entry = { operation: "Update", apiVersion: "v1", time: STAMP, fieldsType: "FieldsV1" };
  return [
    { ...entry, manager: "kube-controller-manager", fieldsV1: specFields() },
    { ...entry, manager: "kubelet", fieldsV1: statusFields(), subresource: "status" },
  ];
}

// Random text, which a real list has and gzip cannot compress.
function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

const STAMP = "2026-01-02T03:04:05Z";
const VOLUMES = ["config", "overrides", "runtime"];
const CONDITIONS = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

function metadata(ordinal: number) {
  return {
    name: `ingester-zone-a-${ordinal}`,
    generateName: "ingester-zone-a-",
    namespace: "bench",
    uid: digest(`pod${ordinal}`).slice(0, 36),
    resourceVersion: String(1_000_000 + ordinal),
    creationTimestamp: STAMP,
    labels: {
      name: "ingester-zone-a",
      "rollout-group": "ingester",
      "controller-revision-hash": "ingester-zone-a-6d4f8b7c9",
    },
    annotations: { "kubectl.kubernetes.io/restartedAt": STAMP, "prometheus.io/scrape": "true" },
    ownerReferences: [
      {
        apiVersion: "apps/v1",
        kind: "StatefulSet",
        name: "ingester-zone-a",
        uid: "1-2-3-4",
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  };
}

function container(name: string, ordinal: number) {
  return {
    name,
    image: `docker.io/grafana/${name}:2.14.0`,
    args: [
      `-target=${name}`,
      "-config.expand-env=true",
      `-ring.instance-id=ingester-zone-a-${ordinal}`,
      "-ring.zone-awareness-enabled=true",
    ],
    ports: ["http-metrics", "grpc", "gossip"].map((port, index) => ({
      name: port,
      containerPort: 8080 + index,
      protocol: "TCP",
    })),
    env: ["GOMAXPROCS", "GOMEMLIMIT", "JAEGER_HOST", "ZONE"].map((variable) => ({
      name: variable,
      value: `${variable}-${ordinal % 7}`,
    })),
    resources: { requests: { cpu: "4", memory: "15Gi" }, limits: { memory: "25Gi" } },
    volumeMounts: VOLUMES.map((volume) => ({ name: volume, mountPath: `/etc/${volume}` })),
    readinessProbe: {
      httpGet: { path: "/ready", port: "http-metrics", scheme: "HTTP" },
      periodSeconds: 10,
      failureThreshold: 3,
    },
    imagePullPolicy: "IfNotPresent",
    terminationMessagePath: "/dev/termination-log",
  };
}

function specFields() {
  const fields = (names: readonly string[]) => Object.fromEntries(names.map((name) => [`f:${name}`, {}]));
  const perContainer = {
    ".": {},
    ...fields(["args", "image", "imagePullPolicy", "name", "terminationMessagePath", "readinessProbe"]),
  };
  return {
    "f:metadata": {
      "f:generateName": {},
      "f:labels": { ".": {}, ...fields(["controller-revision-hash", "name", "rollout-group"]) },
    },
    "f:spec": {
      ...fields([
        "enableServiceLinks",
        "hostname",
        "restartPolicy",
        "schedulerName",
        "securityContext",
        "subdomain",
        "terminationGracePeriodSeconds",
      ]),
      "f:containers": Object.fromEntries(
        CONTAINERS.map((name) => [
          `k:{"name":"${name}"}`,
          {
            ...perContainer,
            "f:env": keyed(["GOMAXPROCS", "GOMEMLIMIT", "JAEGER_HOST", "ZONE"]),
            "f:volumeMounts": keyed(VOLUMES),
          },
        ]),
      ),
      "f:volumes": keyed(VOLUMES),
    },
  };
}

function statusFields() {
  return {
    "f:status": {
      "f:conditions": keyed(CONDITIONS),
      "f:containerStatuses": {},
      "f:hostIP": {},
      "f:phase": {},
      "f:podIP": {},
      "f:startTime": {},
    },
  };
}

function keyed(names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [`k:{"name":"${name}"}`, { ".": {}, "f:name": {}, "f:value": {} }]));
}
