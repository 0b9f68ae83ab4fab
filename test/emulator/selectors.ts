/** Label and field selectors as the API server reads them. */
import { badRequest } from "./api-error.ts";
import { dig, plainText } from "./objects.ts";
import type { KubeObject } from "./objects.ts";

export type Matches = (object: KubeObject) => boolean;
type Labels = Readonly<Record<string, string>>;

/** One requirement: `key in (a,b)`, `key=a`, `key`, `!key`. */
const REQUIREMENT = /^\s*(?:(!)\s*)?([A-Za-z0-9][-A-Za-z0-9_./]*)\s*(?:(==|=|!=)\s*([^\s,()=!<>]*)|\s(in|notin)\s*\(([^)]*)\))?\s*$/;

/** Splits at commas outside brackets. */
const COMMA = /,(?![^(]*\))/;

function requirement(text: string): (labels: Labels) => boolean {
  const match = REQUIREMENT.exec(text);
  if (!match) throw badRequest(`unable to parse requirement: ${JSON.stringify(text)}`);
  const [, not, key = "", sign, value = "", set, members = ""] = match;
  const values = new Set(members.split(",").map((member) => member.trim()));
  const has = (labels: Labels): boolean => Object.hasOwn(labels, key);
  if (not) return (labels) => !has(labels);
  if (set === "in") return (labels) => has(labels) && values.has(labels[key] ?? "");
  if (set === "notin") return (labels) => !has(labels) || !values.has(labels[key] ?? "");
  if (sign === "!=") return (labels) => labels[key] !== value;
  if (sign) return (labels) => labels[key] === value;
  return has;
}

/** Throws BadRequest on what cannot be parsed. */
export function labelSelector(text: string): (labels: Labels) => boolean {
  if (text.trim() === "") return () => true;
  const all = text.split(COMMA).map(requirement);
  return (labels) => all.every((one) => one(labels));
}

/** metav1.LabelSelector as a predicate. An empty one matches all; none at all matches nothing. */
export function objectSelector(selector: unknown): (labels: Labels) => boolean {
  if (selector === undefined || selector === null) return () => false;
  const wanted = Object.entries(asLabels(dig(selector, "matchLabels")));
  const expressions = dig(selector, "matchExpressions");
  const texts = (Array.isArray(expressions) ? expressions : []).map(expressionText);
  const rest = labelSelector(texts.join(","));
  return (labels) => wanted.every(([key, value]) => labels[key] === value) && rest(labels);
}

function expressionText(expression: unknown): string {
  const key = String(dig(expression, "key"));
  const values = dig(expression, "values");
  const members = Array.isArray(values) ? values.join(",") : "";
  const texts: Record<string, string> = {
    In: `${key} in (${members})`,
    NotIn: `${key} notin (${members})`,
    Exists: key,
    DoesNotExist: `!${key}`,
  };
  return texts[String(dig(expression, "operator"))] ?? key;
}

function asLabels(value: unknown): Labels {
  return typeof value === "object" && value !== null ? (value as Labels) : {};
}

/** Fields that each resource can be selected by, beyond its name and namespace (registry strategies' ToSelectableFields). */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  pods: ["spec.nodeName", "status.phase"],
  events: [...["kind", "namespace", "name", "uid"].map((field) => `involvedObject.${field}`), "reason", "type"],
};

/** Throws BadRequest for a field that the resource cannot be selected by. */
export function fieldSelector(resource: string, text: string): Matches {
  if (text.trim() === "") return () => true;
  const all = text.split(",").map((part): Matches => {
    const [, field = "", sign, value = ""] = /^\s*([^=!]+?)\s*(==|=|!=)\s*(.*?)\s*$/.exec(part) ?? [];
    if (!sign) throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`);
    if (!["metadata.name", "metadata.namespace"].includes(field) && !FIELDS[resource]?.includes(field))
      throw badRequest(
        FIELDS[resource]
          ? `field label not supported: ${field}`
          : `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
      );
    const path = field.split(".");
    return (object) => (plainText(dig(object, ...path)) === value) === (sign !== "!=");
  });
  return (object) => all.every((one) => one(object));
}

/** Both selectors of a request's query as one predicate; undefined when it has none. */
export function selectionOf(resource: string, query: URLSearchParams): Matches | undefined {
  const labels = query.get("labelSelector") ?? "";
  const fields = query.get("fieldSelector") ?? "";
  if (!labels && !fields) return undefined;
  const byLabels = labelSelector(labels);
  const byFields = fieldSelector(resource, fields);
  return (object) => byLabels(object.metadata.labels ?? {}) && byFields(object);
}
