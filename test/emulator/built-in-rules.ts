/**
 * Validation of metadata, and of the built-in kinds that Zonewise writes: what is refused is what the real server
 * refuses, as far as programs of calls have found it. The words are often shorter.
 */
import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "./api-error.ts";
import { dig, fieldsOf, isFields, listOf, plainText, textOf, type Draft, type KubeObject } from "./objects.ts";

export const required = (field: string, why = ""): StatusCause => ({
  reason: "FieldValueRequired",
  message: `Required value${why}`,
  field,
});
export const forbidden = (field: string, why: string): StatusCause => ({
  reason: "FieldValueForbidden",
  message: `Forbidden: ${why}`,
  field,
});
export const invalidValue = (field: string, value: unknown, why: string): StatusCause => ({
  reason: "FieldValueInvalid",
  message: `Invalid value: ${JSON.stringify(value)}: ${why}`,
  field,
});
const unsupported = (field: string, value: unknown): StatusCause => ({
  reason: "FieldValueNotSupported",
  message: `Unsupported value: ${JSON.stringify(value)}`,
  field,
});

const QUALIFIED = /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const CONFIG_KEY = /^[-._a-zA-Z0-9]{1,253}$/;
/** RBAC's names may have colons. */
const NAME = /^[a-z0-9](?:[-a-z0-9.:]{0,251}[a-z0-9])?$/;
const STANDARD_FINALIZERS = new Set(["orphan", "foregroundDeletion", "kubernetes"]);
const NAME_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/** Kinds whose metadata has the rules of the core group, not only those of all objects. */
const CORE_METADATA: ReadonlySet<string> = new Set([
  "configmaps",
  "controllerrevisions.apps",
  "pods",
  "secrets",
  "statefulsets.apps",
]);

/** Kinds whose names have no rules. */
const ANY_NAME: ReadonlySet<string> = new Set(["events", "poddisruptionbudgets.policy"]);

const keysOf = (value: unknown): string[] => Object.keys(fieldsOf(value));

function checkLabels(labels: unknown, field: string): StatusCause[] {
  return Object.entries(fieldsOf(labels)).flatMap(([key, value]) => [
    ...(QUALIFIED.test(key) ? [] : [invalidValue(field, key, LABEL_NAME_RULE)]),
    ...(LABEL_VALUE.test(plainText(value)) ? [] : [invalidValue(field, value, LABEL_VALUE_RULE)]),
  ]);
}

const LABEL_NAME_RULE =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_RULE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/** ValidateObjectMeta, and ValidateObjectMetaUpdate against what is stored. */
export function checkMetadata(resource: string, { metadata }: Draft, current: KubeObject | undefined): StatusCause[] {
  const { name = "", labels, finalizers = [], ownerReferences = [] } = metadata;
  const stored = current?.metadata;
  const late =
    stored?.deletionTimestamp === undefined ? [] : finalizers.filter((one) => !stored.finalizers?.includes(one));
  return [
    ...(name === "" || NAME.test(name) || ANY_NAME.has(resource)
      ? []
      : [invalidValue("metadata.name", name, NAME_RULE)]),
    ...checkLabels(labels, "metadata.labels"),
    ...finalizers.flatMap((one, index) => checkFinalizer(plainText(one), `metadata.finalizers[${index}]`, resource)),
    ...(late.length > 0
      ? [
          forbidden(
            "metadata.finalizers",
            `no new finalizers can be added if the object is being deleted, found new finalizers []string{${late.map((one) => JSON.stringify(one)).join(", ")}}`,
          ),
        ]
      : []),
    ...ownerReferences.flatMap((owner) => checkOwner(owner)),
    ...(ownerReferences.filter(({ controller }) => controller).length > 1
      ? [
          invalidValue(
            "metadata.ownerReferences",
            ownerReferences,
            "Only one reference can have Controller set to true",
          ),
        ]
      : []),
  ];
}

function checkFinalizer(name: string, field: string, resource: string): StatusCause[] {
  if (!QUALIFIED.test(name)) return [invalidValue(field, name, LABEL_NAME_RULE)];
  // Others are validated without the rules of the core group.
  if (name.includes("/") || !CORE_METADATA.has(resource) || STANDARD_FINALIZERS.has(name)) return [];
  return [invalidValue(field, name, "name is neither a standard finalizer name nor is it fully qualified")];
}

function checkOwner(owner: unknown): StatusCause[] {
  const at = "metadata.ownerReferences";
  const empty = ["apiVersion", "kind", "name", "uid"].filter((field) => !textOf(dig(owner, field)));
  const isEvent = dig(owner, "kind") === "Event" && dig(owner, "apiVersion") === "v1";
  return [
    ...empty.map((field) => invalidValue(`${at}.${field}`, dig(owner, field) ?? "", "must not be empty")),
    ...(isEvent ? [invalidValue(at, owner, "/v1, Kind=Event is disallowed from being an owner")] : []),
  ];
}

type Check = (object: Draft, current?: KubeObject) => StatusCause[];

const isNegative = (value: unknown): boolean => typeof value === "number" && value < 0;
const NOT_NEGATIVE = "must be greater than or equal to 0";

function notNegative(object: Draft, ...fields: readonly string[]): StatusCause[] {
  return fields.flatMap((field) => {
    const value = dig(object, ...field.split("."));
    return isNegative(value) ? [invalidValue(field, value, NOT_NEGATIVE)] : [];
  });
}

const immutable = (field: string, value: unknown): StatusCause => invalidValue(field, value, "field is immutable");

/** Of ConfigMaps and Secrets. */
const checkData: Check = (object, current) => {
  const keys = ["data", "binaryData"].flatMap((field) => keysOf(object[field]).map((key) => [field, key] as const));
  const twice = keysOf(object["binaryData"]).filter((key) => key in fieldsOf(object["data"]));
  const isSealed = current?.["immutable"] === true;
  return [
    ...keys
      .filter(([, key]) => !CONFIG_KEY.test(key))
      .map(([field, key]) =>
        invalidValue(
          `${field}[${key}]`,
          key,
          "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        ),
      ),
    ...twice.map((key) => invalidValue("data", key, "duplicate of key present in binaryData")),
    ...(isSealed && object["immutable"] !== true
      ? [forbidden("immutable", "field is immutable when `immutable` is set")]
      : []),
    ...["data", "binaryData"]
      .filter((field) => isSealed && !isDeepStrictEqual(fieldsOf(object[field]), fieldsOf(current[field])))
      .map((field) => forbidden(field, "field is immutable when `immutable` is set")),
  ];
};

const checkSecret: Check = (object, current) => [
  ...checkData(object, current),
  ...(current && object["type"] !== (current["type"] ?? "Opaque") ? [immutable("type", object["type"])] : []),
];

const checkRevision: Check = (object, current) => [
  ...notNegative(object, "revision"),
  ...(current && !isDeepStrictEqual(object["data"], current["data"]) ? [immutable("data", object["data"])] : []),
];

const checkLease: Check = (object) => {
  const seconds = dig(object, "spec", "leaseDurationSeconds");
  return [
    ...(typeof seconds === "number" && seconds <= 0
      ? [invalidValue("spec.leaseDurationSeconds", seconds, "must be greater than 0")]
      : []),
    ...notNegative(object, "spec.leaseTransitions"),
  ];
};

/** Events of objects without a namespace are in `default`. */
const checkEvent: Check = (object) => {
  const { namespace } = object.metadata;
  return (dig(object, "involvedObject", "namespace") ?? "default") === namespace
    ? []
    : [
        invalidValue(
          "involvedObject.namespace",
          dig(object, "involvedObject", "namespace"),
          "does not match event.namespace",
        ),
      ];
};

function checkAmount(value: unknown, field: string): StatusCause[] {
  if (isNegative(value)) return [invalidValue(field, value, NOT_NEGATIVE)];
  if (typeof value !== "string") return [];
  const percent = /^(\d+)%$/.exec(value)?.[1];
  if (percent === undefined)
    return [invalidValue(field, value, "a valid percent string must be a numeric string followed by an ending '%'")];
  return Number(percent) > 100 ? [invalidValue(field, value, "must not be greater than 100%")] : [];
}

const checkBudget: Check = (object) => {
  const { minAvailable, maxUnavailable, unhealthyPodEvictionPolicy: policy, selector } = fieldsOf(object["spec"]);
  return [
    ...(minAvailable !== undefined && maxUnavailable !== undefined
      ? [invalidValue("spec", object["spec"], "minAvailable and maxUnavailable cannot be both set")]
      : []),
    ...checkAmount(minAvailable, "spec.minAvailable"),
    ...checkAmount(maxUnavailable, "spec.maxUnavailable"),
    ...(policy !== undefined && !["IfHealthyBudget", "AlwaysAllow"].includes(plainText(policy))
      ? [unsupported("spec.unhealthyPodEvictionPolicy", policy)]
      : []),
    ...checkLabels(dig(selector, "matchLabels"), "spec.selector.matchLabels"),
  ];
};

/** What of a pod's spec may change besides images: ValidatePodUpdate. */
const checkPod: Check = (object, current) =>
  current && !isDeepStrictEqual(mutablePartGone(object["spec"]), mutablePartGone(current["spec"]))
    ? [
        forbidden(
          "spec",
          "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        ),
      ]
    : [];

function mutablePartGone(spec: unknown): object {
  const { activeDeadlineSeconds: _, tolerations: __, containers, ...rest } = fieldsOf(spec);
  return { ...rest, containers: listOf(containers).map((one) => (isFields(one) ? { ...one, image: "" } : one)) };
}

const checkSetStrategy: Check = (object) => {
  const { updateStrategy, podManagementPolicy, ordinals } = fieldsOf(object["spec"]);
  const { type, rollingUpdate } = fieldsOf(updateStrategy);
  return [
    ...(type === undefined || type === "RollingUpdate" || type === "OnDelete"
      ? []
      : [invalidValue("spec.updateStrategy", updateStrategy, "must be 'RollingUpdate' or 'OnDelete'")]),
    ...(type === "OnDelete" && rollingUpdate !== undefined
      ? [
          invalidValue(
            "spec.updateStrategy.rollingUpdate",
            rollingUpdate,
            "only allowed for updateStrategy 'RollingUpdate'",
          ),
        ]
      : []),
    ...(podManagementPolicy === undefined || ["OrderedReady", "Parallel"].includes(plainText(podManagementPolicy))
      ? []
      : [invalidValue("spec.podManagementPolicy", podManagementPolicy, "must be 'OrderedReady' or 'Parallel'")]),
    ...(isNegative(dig(ordinals, "start"))
      ? [invalidValue("spec.ordinals.start", dig(ordinals, "start"), NOT_NEGATIVE)]
      : []),
    ...notNegative(object, "spec.updateStrategy.rollingUpdate.partition", "spec.minReadySeconds"),
  ];
};

/** ValidateStatefulSetStatus. */
const checkSetStatus: Check = (object) => {
  const { replicas = 0, ...counts } = fieldsOf(object["status"]) as Record<string, number>;
  const parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
  return [
    ...notNegative(object, "status.replicas", ...parts.map((part) => `status.${part}`)),
    ...parts
      .filter((part) => (counts[part] ?? 0) > replicas)
      .map((part) => invalidValue(`status.${part}`, counts[part], "cannot be greater than status.replicas")),
    ...((counts["availableReplicas"] ?? 0) > (counts["readyReplicas"] ?? 0)
      ? [invalidValue("status.availableReplicas", counts["availableReplicas"], "cannot be greater than readyReplicas")]
      : []),
  ];
};

export const BUILT_IN_RULES: Readonly<Record<string, Check>> = {
  configmaps: checkData,
  secrets: checkSecret,
  "controllerrevisions.apps": checkRevision,
  "leases.coordination.k8s.io": checkLease,
  events: checkEvent,
  "poddisruptionbudgets.policy": checkBudget,
  pods: checkPod,
  "statefulsets.apps": (object) => [...checkSetStrategy(object), ...checkSetStatus(object)],
};
