/** The objects that the chart renders, as fields by their paths; and the fields of what is in several objects. */
import assert from "node:assert/strict";
import { type Helm, parseManifests } from "./helm.ts";

export const NAMESPACE = "cell-a-1";
/** Fields by their paths, `Kind name path.to.field`; values as JSON. */
export type Fields = Readonly<Record<string, string>>;

function fieldsOf(value: unknown, path: string): [string, string][] {
  if (typeof value !== "object" || value === null || Object.keys(value).length === 0)
    return [[path, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([key, child]) =>
    fieldsOf(child, `${path}${path.endsWith(" ") ? "" : "."}${key}`),
  );
}

export async function renderWith({ template }: Helm, values: object): Promise<Fields> {
  const { code, text } = await template(NAMESPACE, values);
  assert.equal(code, 0, text);
  return Object.fromEntries(parseManifests(text).flatMap((one) => fieldsOf(one, `${one.kind} ${one.metadata.name} `)));
}

/** Fields that are new or have another value; null for those that are gone. */
export function changesOf(from: Fields, to: Fields): Record<string, unknown> {
  const changed = Object.entries(to).filter(([path, value]) => from[path] !== value);
  const gone = Object.keys(from).filter((path) => !(path in to));
  return Object.fromEntries([
    ...changed.map(([path, value]) => [path, JSON.parse(value) as unknown]),
    ...gone.map((path) => [path, null]),
  ]);
}

export const DEPLOYMENT = "Deployment zonewise-functions";
export const RECONCILER = "CronJob zonewise-reconciler";
export const CERTIFICATES = "CronJob zonewise-certificates";
export const JOB = "spec.jobTemplate.spec.template";
export const CONTAINER = "spec.containers.0";
/** The same in the pods of all three. */
export const pods = (path: string, value: unknown): Record<string, unknown> => ({
  [`${DEPLOYMENT} spec.template.${path}`]: value,
  [`${RECONCILER} ${JOB}.${path}`]: value,
  [`${CERTIFICATES} ${JOB}.${path}`]: value,
});
/** The same variable, added to the variables that each container has. */
export const variables = (
  name: string,
  value: string,
  places = [`${DEPLOYMENT} spec.template.`, `${RECONCILER} ${JOB}.`, `${CERTIFICATES} ${JOB}.`],
) =>
  Object.fromEntries(
    places.flatMap((place) => {
      const at = `${place}${CONTAINER}.env.${place.startsWith("Deployment") ? 3 : place.startsWith(RECONCILER) ? 4 : 1}`;
      return [
        [`${at}.name`, name],
        [`${at}.value`, value],
      ];
    }),
  );
export const webhook = (name: string, field: string, value: unknown): Record<string, unknown> => {
  const kind = /^(?:no-downscale|zpdb|phased-validation)/.test(name) ? "Validating" : "Mutating";
  return { [`${kind}WebhookConfiguration ${name}-${NAMESPACE} ${field}`]: value };
};
const WEBHOOKS = [
  "no-downscale",
  "phased-defaults",
  "phased-validation",
  "pod-eviction",
  "prepare-downscale",
  "raise-partition",
  "zpdb-validation",
];
export const webhooks = (field: string, value: unknown): Record<string, unknown> =>
  Object.assign({}, ...WEBHOOKS.map((name) => webhook(name, field, value))) as Record<string, unknown>;
export const ACCOUNTS = ["functions", "reconciler", "certificates"].map((name) => `ServiceAccount zonewise-${name}`);
export const SECRET = "rollout-operator-self-signed-certificate";
export const EXPRESSION = { key: "team", operator: "NotIn", values: ["a"] };
export const expressions = (at: string): [string, unknown][] => [
  [`${at}.matchExpressions.0.key`, "team"],
  [`${at}.matchExpressions.0.operator`, "NotIn"],
  [`${at}.matchExpressions.0.values.0`, "a"],
];
