/**
 * The messages of a list of pods, with the fields that pods of tests have: name=number, and the type unless it is text.
 * Numbers and types are those of generated.proto in k8s.io/api and k8s.io/apimachinery. What begins with `+` is a
 * message there, and part of its parent in JSON.
 */
const MESSAGES = {
  PodList: "metadata=1 ListMeta, items=2 Pod",
  ListMeta: "resourceVersion=2, continue=3, remainingItemCount=4 int",
  Pod: "metadata=1 ObjectMeta, spec=2 PodSpec, status=3 PodStatus",
  ObjectMeta:
    "name=1, generateName=2, namespace=3, uid=5, resourceVersion=6, generation=7 int, creationTimestamp=8 time, deletionTimestamp=9 time, " +
    "deletionGracePeriodSeconds=10 int, labels=11 map, annotations=12 map, ownerReferences=13 OwnerReference, finalizers=14 list, " +
    "managedFields=17 ManagedFieldsEntry",
  PodSecurityContext: "runAsUser=2 int, runAsNonRoot=3 flag, fsGroup=5 int, runAsGroup=6 int",
  OwnerReference: "kind=1, name=3, uid=4, apiVersion=5, controller=6 flag, blockOwnerDeletion=7 flag",
  ManagedFieldsEntry: "manager=1, operation=2, apiVersion=3, time=4 time, fieldsType=6, fieldsV1=7 json, subresource=8",
  PodSpec:
    "volumes=1 Volume, containers=2 Container, restartPolicy=3, terminationGracePeriodSeconds=4 int, dnsPolicy=6, nodeSelector=7 map, " +
    "serviceAccountName=8, nodeName=10, securityContext=14 PodSecurityContext, hostname=16, subdomain=17, schedulerName=19, tolerations=22 Toleration, " +
    "readinessGates=28 PodReadinessGate",
  Container:
    "name=1, image=2, command=3 list, args=4 list, ports=6 ContainerPort, env=7 EnvVar, resources=8 ResourceRequirements, volumeMounts=9 VolumeMount, " +
    "readinessProbe=11 Probe, terminationMessagePath=13, imagePullPolicy=14, terminationMessagePolicy=20",
  ContainerPort: "name=1, containerPort=3 int, protocol=4",
  EnvVar: "name=1, value=2",
  ResourceRequirements: "limits=1 quantities, requests=2 quantities",
  VolumeMount: "name=1, mountPath=3",
  Probe: "+handler=1 ProbeHandler, periodSeconds=4 int, failureThreshold=6 int",
  ProbeHandler: "httpGet=2 HTTPGetAction",
  HTTPGetAction: "path=1, port=2 intOrText, scheme=4",
  Volume: "name=1, +source=2 VolumeSource",
  VolumeSource: "configMap=19 ConfigMapVolumeSource",
  ConfigMapVolumeSource: "+reference=1 LocalObjectReference, defaultMode=3 int",
  LocalObjectReference: "name=1",
  Toleration: "key=1, operator=2, value=3, effect=4, tolerationSeconds=5 int",
  PodReadinessGate: "conditionType=1",
  PodStatus:
    "phase=1, conditions=2 PodCondition, message=3, reason=4, hostIP=5, podIP=6, startTime=7 time, containerStatuses=8 ContainerStatus, " +
    "qosClass=9, initContainerStatuses=10 ContainerStatus, podIPs=12 PodIP, hostIPs=16 PodIP, observedGeneration=17 int",
  PodIP: "ip=1",
  PodCondition:
    "type=1, status=2, lastProbeTime=3 time, lastTransitionTime=4 time, reason=5, message=6, observedGeneration=7 int",
  ContainerStatus:
    "name=1, state=2 ContainerState, lastState=3 ContainerState, ready=4 flag, restartCount=5 int, image=6, imageID=7, containerID=8, " +
    "started=9 flag",
  ContainerState:
    "waiting=1 ContainerStateWaiting, running=2 ContainerStateRunning, terminated=3 ContainerStateTerminated",
  ContainerStateWaiting: "reason=1, message=2",
  ContainerStateRunning: "startedAt=1 time",
  ContainerStateTerminated: "exitCode=1 int, reason=3, message=4, startedAt=5 time, finishedAt=6 time, containerID=7",
  Status: "metadata=1 ListMeta, status=2, message=3, reason=4, details=5 StatusDetails, code=6 int",
  StatusDetails: "name=1, group=2, kind=3, causes=4 StatusCause, retryAfterSeconds=5 int, uid=6",
  StatusCause: "reason=1, message=2, field=3",
} as const satisfies Readonly<Record<string, string>>;

export type MessageName = keyof typeof MESSAGES;

export type Scalar = "text" | "list" | "map" | "int" | "flag" | "time" | "quantities" | "json" | "intOrText";

export interface Field {
  readonly number: number;
  /** Its fields are those of its parent in JSON. */
  readonly inline: boolean;
  readonly type: MessageName | Scalar;
}

export const isMessage = (type: Field["type"]): type is MessageName => type in MESSAGES;

const FIELD = /(?<inline>\+?)(?<name>\w+)=(?<number>\d+)(?: (?<type>\w+))?/g;

/** The fields of every message, by the names that they have in JSON. */
export const FIELDS = Object.fromEntries(
  Object.entries(MESSAGES).map(([name, text]) => [name, fieldsOf(text)]),
) as unknown as Readonly<Record<MessageName, ReadonlyMap<string, Field>>>;

function fieldsOf(text: string): Map<string, Field> {
  return new Map(
    [...text.matchAll(FIELD)].map(({ groups: { inline = "", name = "", number = "", type = "text" } = {} }) => [
      name,
      { number: Number(number), inline: inline !== "", type: type as Field["type"] },
    ]),
  );
}
