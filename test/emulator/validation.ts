/** What users trip over, refused in the real server's words. Not a complete validation. */
import { isDeepStrictEqual } from "node:util";
import { invalid } from "./api-error.ts";
import type { Cause } from "./api-error.ts";
import { dig, fieldsOf, isFields, listOf, put } from "./objects.ts";
import type { Draft, KubeObject } from "./objects.ts";
import type { Served } from "./registry.ts";
import { objectSelector } from "./selectors.ts";

type Check = (object: Draft, current: KubeObject | undefined) => readonly Cause[];

const required = (field: string, why = ""): Cause => ({
  reason: "FieldValueRequired",
  message: `Required value${why && `: ${why}`}`,
  field,
});
const wrong = (field: string, value: unknown, why: string): Cause => ({
  reason: "FieldValueInvalid",
  message: `Invalid value: ${JSON.stringify(value)}: ${why}`,
  field,
});

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN_TEXT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/** Names of these are DNS labels, not subdomains. */
const LABEL_NAMES = new Set(["namespaces", "services"]);
/** Names of these are path segments. */
const FREE_NAMES = new Set(["roles", "clusterroles", "rolebindings", "clusterrolebindings"]);

function checkName(kind: Served, object: Draft): Cause[] {
  const { name = "" } = object.metadata;
  if (name === "") return [required("metadata.name", "name or generateName is required")];
  if (FREE_NAMES.has(kind.plural)) return [];
  const isLabel = LABEL_NAMES.has(kind.plural);
  const isValid = isLabel ? LABEL.test(name) && name.length <= 63 : SUBDOMAIN.test(name) && name.length <= 253;
  return isValid ? [] : [wrong("metadata.name", name, isLabel ? LABEL_TEXT : SUBDOMAIN_TEXT)];
}

function checkTemplate(object: Draft): Cause[] {
  const selector = dig(object, "spec", "selector");
  const labels = dig(object, "spec", "template", "metadata", "labels");
  const texts = Object.fromEntries(Object.entries(fieldsOf(labels)).map(([key, value]) => [key, String(value)]));
  const causes: Cause[] = selector === undefined ? [required("spec.selector")] : [];
  if (!objectSelector(selector)(texts))
    causes.push(wrong("spec.template.metadata.labels", labels ?? null, "`selector` does not match template `labels`"));
  if (listOf(dig(object, "spec", "template", "spec", "containers")).length === 0) causes.push(required("spec.template.spec.containers"));
  return causes;
}

function checkReplicas(object: Draft): Cause[] {
  const replicas = dig(object, "spec", "replicas");
  if (typeof replicas === "number" && replicas >= 0) return [];
  return [wrong("spec.replicas", replicas, "must be greater than or equal to 0")];
}

/** Fields of a StatefulSet that may change. */
const MUTABLE = [
  "replicas",
  "ordinals",
  "template",
  "updateStrategy",
  "revisionHistoryLimit",
  "persistentVolumeClaimRetentionPolicy",
  "minReadySeconds",
];
const IMMUTABLE_TEXT =
  "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

const statefulSet: Check = (object, current) => {
  const causes = [...checkReplicas(object), ...checkTemplate(object)];
  const fixed = (spec: unknown): unknown => MUTABLE.reduce((rest, field) => put(rest, [field], undefined), fieldsOf(spec));
  if (current && !isDeepStrictEqual(fixed(object["spec"]), fixed(current["spec"])))
    causes.push({ reason: "FieldValueForbidden", message: IMMUTABLE_TEXT, field: "spec" });
  return causes;
};

const POD_UPDATE_TEXT =
  "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

const pod: Check = (object, current) => {
  if (listOf(dig(object, "spec", "containers")).length === 0) return [required("spec.containers")];
  const fixed = (spec: unknown): unknown => {
    const images = (field: string): unknown[] => listOf(dig(spec, field)).map((one) => (isFields(one) ? { ...one, image: "" } : one));
    const { activeDeadlineSeconds: _, tolerations: __, ...rest } = fieldsOf(spec);
    return { ...rest, containers: images("containers"), initContainers: images("initContainers") };
  };
  if (!current || isDeepStrictEqual(fixed(object["spec"]), fixed(current["spec"]))) return [];
  return [{ reason: "FieldValueForbidden", message: POD_UPDATE_TEXT, field: "spec" }];
};

const definition: Check = (object) => {
  const expected = `${String(dig(object, "spec", "names", "plural"))}.${String(dig(object, "spec", "group"))}`;
  if (object.metadata.name === expected) return [];
  return [wrong("metadata.name", object.metadata.name, `must be spec.names.plural+"."+spec.group`)];
};

/** Fields of webhooks that would be passed over here without a word, and the values that are as good as none. */
const NOT_PLAYED: Readonly<Record<string, readonly unknown[]>> = { matchConditions: [undefined], reinvocationPolicy: [undefined, "Never"] };

const webhooks: Check = (object) =>
  listOf(object["webhooks"]).flatMap((webhook, i) => {
    const causes = Object.entries(NOT_PLAYED)
      .filter(([field, allowed]) => !allowed.includes(dig(webhook, field)))
      .map(([field]) => ({
        reason: "FieldValueForbidden",
        message: `Forbidden: the embedded cluster has no ${field}`,
        field: `webhooks[${i}].${field}`,
      }));
    const effects = dig(webhook, "sideEffects");
    if (effects === "None" || effects === "NoneOnDryRun") return causes;
    const message = `Unsupported value: ${JSON.stringify(effects ?? "")}: supported values: "None", "NoneOnDryRun"`;
    return [...causes, { reason: "FieldValueNotSupported", message, field: `webhooks[${i}].sideEffects` }];
  });

const CHECKS: Readonly<Record<string, Check>> = {
  "statefulsets.apps": statefulSet,
  "customresourcedefinitions.apiextensions.k8s.io": definition,
  "validatingwebhookconfigurations.admissionregistration.k8s.io": webhooks,
  "mutatingwebhookconfigurations.admissionregistration.k8s.io": webhooks,
  pods: pod,
};

/** Throws Invalid (422) with all that is wrong. `current` is the stored object of an update. */
export function validate(kind: Served, object: Draft, current?: KubeObject): void {
  const causes = [
    ...(current ? [] : checkName(kind, object)),
    ...(CHECKS[kind.resource]?.(object, current) ?? []),
    ...(kind.custom?.schema.check(object) ?? []),
  ];
  if (causes.length > 0) throw invalid(kind.kind, kind.group, object.metadata.name ?? "", causes);
}
