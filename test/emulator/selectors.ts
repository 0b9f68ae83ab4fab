/** Label and field selectors as the API server reads them. */
import { badRequest } from "./api-error.ts";
import { BUILT_IN } from "./kinds.ts";
import { dig, fieldsOf, listOf, plainText, type KubeObject } from "./objects.ts";

export type Matches = (object: KubeObject) => boolean;
type MatchesLabels = (labels: Readonly<Record<string, string>>) => boolean;

/** One requirement: `key in (a,b)`, `key=a`, `key`, `!key`. */
const REQUIREMENT =
  /^\s*(?:(!)\s*)?([A-Za-z0-9][-A-Za-z0-9_./]*)\s*(?:(==|=|!=)\s*([^\s,()=!<>]*)|\s(in|notin)\s*\(([^)]*)\))?\s*$/;

/** A comma outside parentheses. */
const COMMA = /,(?![^(]*\))/;

function parseRequirement(text: string): MatchesLabels {
  const match = REQUIREMENT.exec(text);
  if (!match)
    throw badRequest(
      `unable to parse requirement: <nil>: Invalid value: ${JSON.stringify(text)}: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
    );
  const [, not, key = "", sign, value = "", set, members = ""] = match;
  const values = sign ? [value] : members.split(",").map((member) => member.trim());
  const has: MatchesLabels = (labels) => Object.hasOwn(labels, key);
  const isIn: MatchesLabels = (labels) => has(labels) && values.includes(labels[key] ?? "");
  if (not) return (labels) => !has(labels);
  if (sign === "!=" || set === "notin") return (labels) => !isIn(labels);
  return sign || set ? isIn : has;
}

/** Throws BadRequest if the text cannot be parsed. */
export function labelSelector(text: string): MatchesLabels {
  const all = text.trim() ? text.split(COMMA).map(parseRequirement) : [];
  return (labels) => all.every((one) => one(labels));
}

/**
 * metav1.LabelSelector as a predicate. An empty selector matches everything, null and undefined match
 * nothing.
 */
export function objectSelector(selector: unknown): MatchesLabels {
  return selector === undefined || selector === null ? () => false : labelSelector(selectorText(selector));
}

/** metav1.LabelSelector in the syntax of the `labelSelector` parameter. */
function selectorText(selector: unknown): string {
  const labels = Object.entries(fieldsOf(dig(selector, "matchLabels"))).map(
    ([key, value]) => `${key}=${String(value)}`,
  );
  const expressions = listOf(dig(selector, "matchExpressions")).map((expression) => {
    const [key, operator] = [String(dig(expression, "key")), String(dig(expression, "operator"))];
    const set = { In: "in", NotIn: "notin" }[operator];
    if (set) return `${key} ${set} (${listOf(dig(expression, "values")).join(",")})`;
    return operator === "DoesNotExist" ? `!${key}` : key;
  });
  return [...labels.toSorted(), ...expressions].join(",");
}

/**
 * Selectable fields of each resource besides name and namespace (the registry strategies'
 * ToSelectableFields).
 */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  pods: ["spec.nodeName", "status.phase"],
  secrets: ["type"],
  events: [
    ...["kind", "namespace", "name", "uid"].map((field) => `involvedObject.${field}`),
    "reason",
    "reportingComponent",
    "type",
  ],
};

/** Throws BadRequest for a field that is not selectable. */
function fieldSelector(resource: string, text: string): Matches {
  const all = (text.trim() ? text.split(",") : []).map((part): Matches => {
    const [, field = "", sign, value = ""] = /^\s*([^=!]+?)\s*(==|=|!=)\s*(.*?)\s*$/.exec(part) ?? [];
    if (!["metadata.name", "metadata.namespace", ...(FIELDS[resource] ?? [])].includes(field))
      throw badRequest(
        resource in FIELDS || !BUILT_IN.some((kind) => kind.resource === resource)
          ? `field label not supported: ${field || part}`
          : `${JSON.stringify(field || part)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
      );
    const path = field.split(".");
    return (object) => (plainText(dig(object, ...path)) === value) === (sign !== "!=");
  });
  return (object) => all.every((one) => one(object));
}

/** Both selectors of a request's query as one predicate; undefined if the query has none. */
export function requestSelector(resource: string, query: URLSearchParams): Matches | undefined {
  const [labels, fields] = [query.get("labelSelector"), query.get("fieldSelector")];
  if (!labels && !fields) return undefined;
  const byLabels = labelSelector(labels ?? "");
  const byFields = fieldSelector(resource, fields ?? "");
  return (object) => byLabels(object.metadata.labels ?? {}) && byFields(object);
}
