import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { parseAllDocuments } from "yaml";

interface Role {
  readonly kind: string;
  readonly rules: readonly { readonly resourceNames?: readonly string[] }[];
}

function rulesOf(path: string, kind: string): Role["rules"] {
  const text = readFileSync(join(import.meta.dirname, "../../infra/manifests", path), "utf8");
  const role = parseAllDocuments(text)
    .map((document) => document.toJS() as Role)
    .find((manifest) => manifest.kind === kind);
  assert.ok(role, `${path} has no ${kind}`);
  return role.rules;
}

it("an installation for all namespaces may do there what one for a single namespace may do in its own, and nothing else", () => {
  const own = rulesOf("reconciler/rbac.yaml", "Role").filter(({ resourceNames }) => !resourceNames?.includes("zonewise-reconciler"));
  assert.deepEqual(rulesOf("all-namespaces/cluster-rbac.yaml", "ClusterRole"), own);
});
