/** What the manifests allow each ServiceAccount. A right is `verb resource[/subresource]`. */
import assert from "node:assert/strict";
import { type Manifest, read } from "./manifests.ts";

export interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

interface Binding extends Manifest {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly name: string }[];
}

const FILES = [
  "functions/rbac",
  "reconciler/rbac",
  "certificates/rbac",
  "status-page/rbac",
  "prometheus-secrets/rbac",
  ...["agent", "api", "certificates", "reconciler"].map((part) => `node-updates/rbac-${part}`),
];
const RBAC = FILES.flatMap((file) => read(`infra/manifests/${file}.yaml`));

/** The rules of all Roles that are bound to a ServiceAccount. */
export function rulesBoundTo(account: string): readonly Rule[] {
  const bindings = RBAC.filter(({ kind }) => kind?.endsWith("RoleBinding")) as Binding[];
  const bound = bindings
    .filter(({ subjects }) => subjects.some(({ name }) => name === account))
    .map(({ roleRef }) => roleRef);
  return bound.flatMap(({ kind, name }) => {
    const role = RBAC.find((one) => one.kind === kind && one.metadata?.name === name) ?? assert.fail(`${kind} ${name}`);
    return role["rules"] as Rule[];
  });
}

export const rightsOf = (rule: Rule): string[] =>
  rule.verbs.flatMap((verb) => rule.resources.map((resource) => `${verb} ${resource}`));
