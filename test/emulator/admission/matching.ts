/** Which webhooks a request concerns (admissionregistration.k8s.io/v1: rules, namespaceSelector, objectSelector). */
import type { Review } from "../api.ts";
import { dig, isFields, listOf, numberOf } from "../objects.ts";
import type { Draft, Fields } from "../objects.ts";
import type { Ask } from "../request.ts";
import { objectSelector } from "../selectors.ts";
import type { Store } from "../store.ts";

/** One webhook of a configuration, defaults already in it. */
export interface Webhook {
  readonly name: string;
  readonly fields: Fields;
  readonly failsOpen: boolean;
  readonly timeoutSeconds: number;
}

const GROUP = "admissionregistration.k8s.io";

function webhookOf(fields: Fields): Webhook {
  return {
    name: String(fields["name"]),
    fields,
    failsOpen: fields["failurePolicy"] === "Ignore",
    timeoutSeconds: numberOf(fields["timeoutSeconds"]) ?? 10,
  };
}

/** In order of their configurations' names. Requests about webhook configurations concern none. */
export function webhooksFor(store: Store, type: "mutating" | "validating", ask: Ask, review: Review): Webhook[] {
  if (ask.kind.group === GROUP) return [];
  return store
    .list(`${type}webhookconfigurations.${GROUP}`)
    .flatMap((configuration) => listOf(configuration["webhooks"]).filter(isFields))
    .filter((webhook) => matches(store, webhook, ask, review))
    .map(webhookOf);
}

function matches(store: Store, webhook: Fields, ask: Ask, review: Review): boolean {
  return (
    listOf(webhook["rules"]).some((rule) => ruleMatches(rule, ask, review.operation)) &&
    namespaceMatches(store, webhook["namespaceSelector"], ask, review) &&
    objectMatches(webhook["objectSelector"], review)
  );
}

function ruleMatches(rule: unknown, { kind, subresource, namespace }: Ask, operation: string): boolean {
  const has = (field: string, value: string): boolean => listOf(dig(rule, field)).some((one) => one === "*" || one === value);
  const scope = dig(rule, "scope") ?? "*";
  return (
    (scope === "*" || (scope === "Namespaced") === (namespace !== undefined)) &&
    has("operations", operation) &&
    has("apiGroups", kind.group) &&
    has("apiVersions", kind.version) &&
    listOf(dig(rule, "resources")).some((one) => resourceMatches(String(one), kind.plural, subresource))
  );
}

/** `*` means all resources without subresources; a star on both sides of the slash everything. */
function resourceMatches(pattern: string, plural: string, subresource: string): boolean {
  const [resource, below = ""] = pattern.split("/");
  return (resource === "*" || resource === plural) && (below === subresource || (below === "*" && pattern.includes("/")));
}

function isEmpty(selector: unknown): boolean {
  return !dig(selector, "matchLabels") && !dig(selector, "matchExpressions");
}

/** Of a Namespace its own labels count; other cluster-wide objects always match. */
function namespaceMatches(store: Store, selector: unknown, ask: Ask, review: Review): boolean {
  if (isEmpty(selector)) return true;
  const isNamespace = ask.resource === "namespaces";
  if (!isNamespace && ask.namespace === undefined) return true;
  const namespace = isNamespace ? (review.object ?? review.oldObject) : store.get("namespaces", undefined, ask.namespace ?? "");
  return namespace !== undefined && objectSelector(selector)(namespace.metadata.labels ?? {});
}

/** The old or the new object may match. */
function objectMatches(selector: unknown, { object, oldObject }: Review): boolean {
  if (isEmpty(selector)) return true;
  const select = objectSelector(selector);
  return [object, oldObject].some((one: Draft | undefined) => one !== undefined && select(one.metadata.labels ?? {}));
}
