/** Validation of common mistakes, with the real server's messages. It is not complete. */
import { isDeepStrictEqual } from "node:util";
import { messageOf } from "../../infra/errors.ts";
import { compile } from "./admission/match-conditions.ts";
import { invalid, type StatusCause } from "./api-error.ts";
import { BUILT_IN_RULES, checkMetadata, forbidden, invalidValue, required } from "./built-in-rules.ts";
import { compileSchema } from "./crd/schema.ts";
import { dig, fieldsOf, listOf, type Draft, type KubeObject } from "./objects.ts";
import { CRDS, customKinds, type Served } from "./registry.ts";
import { objectSelector } from "./selectors.ts";

/** Fields that the emulator itself needs. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  "statefulsets.apps": ["spec.selector", "spec.template.spec.containers"],
  [CRDS]: ["spec.group", "spec.names.plural", "spec.names.kind", "spec.versions"],
};

const list = { type: "array" };
const texts = { type: "object", additionalProperties: { type: "string" } };
const name = { type: "string" };
const owner = { type: "object", required: ["uid"], properties: { uid: { type: "string" } } };
const metadata = {
  properties: { name, labels: texts, annotations: texts, finalizers: list, ownerReferences: { ...list, items: owner } },
};
const status = { properties: { conditions: list, containerStatuses: list } };
/** Types that the emulator's code relies on. */
const TYPES = compileSchema({ properties: { metadata, status } });

/** Mutable fields of a StatefulSet's spec. */
const MUTABLE =
  "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'";

function checkStatefulSet(object: Draft, current: KubeObject | undefined): StatusCause[] {
  const [before, after] = [fieldsOf((current ?? object)["spec"]), fieldsOf(object["spec"])];
  const changed = Object.keys({ ...before, ...after }).filter(
    (field) => !isDeepStrictEqual(before[field], after[field]),
  );
  const causes: StatusCause[] = [];
  if (changed.some((field) => !MUTABLE.includes(`'${field}'`)))
    causes.push(forbidden("spec", `updates to statefulset spec for fields other than ${MUTABLE} are forbidden`));
  const { replicas, selector, template } = after;
  if (typeof replicas !== "number" || replicas < 0)
    causes.push(invalidValue("spec.replicas", replicas, "must be greater than or equal to 0"));
  if (Number(replicas) > 100_000)
    causes.push(invalidValue("spec.replicas", replicas, "more than the embedded cluster has memory for"));
  const labels = fieldsOf(dig(template, "metadata", "labels")) as Record<string, string>;
  if (!objectSelector(selector)(labels))
    causes.push(invalidValue("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"));
  return causes;
}

/** What of a webhook the emulator does not implement is refused. */
function checkWebhooks(object: Draft): StatusCause[] {
  return listOf(object["webhooks"]).flatMap((webhook, i) =>
    listOf(dig(webhook, "matchConditions")).flatMap((condition, j) =>
      checkExpression(`webhooks[${i}].matchConditions[${j}].expression`, dig(condition, "expression")),
    ),
  );
}

function checkExpression(path: string, expression: unknown): StatusCause[] {
  try {
    compile(String(expression));
    return [];
  } catch (error) {
    return [invalidValue(path, expression, messageOf(error))];
  }
}

/**
 * Throws Invalid (422) with all causes, those that are known before among them. `current` is the stored object of an
 * update.
 */
export function validate(kind: Served, object: Draft, current?: KubeObject, known: readonly StatusCause[] = []): void {
  const { name = "" } = object.metadata;
  const missing = REQUIRED[kind.resource]?.filter((path) =>
    [dig(object, ...path.split("."))].flat().every((one) => one === undefined),
  );
  const wrongTypes = TYPES.check(object);
  const causes = [
    ...known,
    ...(name ? [] : [required("metadata.name", ": name or generateName is required")]),
    ...(missing ?? []).map((path) => required(path)),
    ...wrongTypes,
    // What is of another type than the code below relies on is not looked at.
    ...(wrongTypes.length > 0 ? [] : checkMetadata(kind.resource, object, current)),
    ...(wrongTypes.length > 0 ? [] : (BUILT_IN_RULES[kind.resource]?.(object, current) ?? [])),
    ...(kind.resource === "statefulsets.apps" ? checkStatefulSet(object, current) : []),
    ...(kind.group === "admissionregistration.k8s.io" ? checkWebhooks(object) : []),
    ...(kind.custom?.schema.check(object, current) ?? []),
  ];
  if (causes.length > 0) throw invalid(kind, name, causes);
  // Both throw if the object could be stored but never used.
  if (kind.resource === CRDS) customKinds(object as KubeObject);
  if (!kind.custom) objectSelector(dig(object, "spec", "selector"));
}
