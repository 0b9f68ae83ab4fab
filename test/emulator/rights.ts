/**
 * What roles and their bindings allow an account: for SubjectAccessReviews alone. Requests are not judged, and without
 * any Role everybody may do everything.
 */
import { dig, listOf, textOf } from "./objects.ts";
import type { Store } from "./store.ts";

const RBAC = "rbac.authorization.k8s.io";

/** The spec of a SubjectAccessReview. */
export function isAllowed(store: Store, spec: unknown): boolean {
  const asked = dig(spec, "resourceAttributes");
  const [, kind, place, account] = (textOf(dig(spec, "user")) ?? "").split(":");
  if (kind !== "serviceaccount" || store.list(`roles.${RBAC}`).length === 0) return true;
  const isBound = (binding: unknown): boolean =>
    listOf(dig(binding, "subjects")).some(
      (subject) =>
        dig(subject, "name") === account &&
        (dig(subject, "namespace") ?? dig(binding, "metadata", "namespace")) === place,
    );
  const namespace = textOf(dig(asked, "namespace"));
  const roles = [
    ...store
      .list(`rolebindings.${RBAC}`, namespace)
      .filter(isBound)
      .map((binding) => store.get(`roles.${RBAC}`, namespace, textOf(dig(binding, "roleRef", "name")) ?? "")),
    ...store
      .list(`clusterrolebindings.${RBAC}`)
      .filter(isBound)
      .map((binding) => store.get(`clusterroles.${RBAC}`, undefined, textOf(dig(binding, "roleRef", "name")) ?? "")),
  ];
  return roles.flatMap((role) => listOf(role?.["rules"])).some((rule) => allows(rule, asked));
}

function allows(rule: unknown, asked: unknown): boolean {
  const field = (name: string): string => textOf(dig(asked, name)) ?? "";
  const has = (list: string, value: string): boolean =>
    listOf(dig(rule, list)).some((one) => one === value || one === "*");
  const resource = [field("resource"), field("subresource")].filter(Boolean).join("/");
  const names = listOf(dig(rule, "resourceNames"));
  return (
    has("verbs", field("verb")) &&
    has("apiGroups", field("group")) &&
    has("resources", resource) &&
    (names.length === 0 || names.includes(field("name")))
  );
}
