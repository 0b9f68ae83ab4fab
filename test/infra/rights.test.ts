/** What the manifests' roles name; test/cluster/install/rights.cluster.ts asks a real API server what they allow. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { it } from "node:test";
import { find, read, rightsOf, ROOT, rulesOf } from "./manifests.ts";

const ROLES = globSync("infra/manifests/**/*.yaml", { cwd: ROOT })
  .flatMap(read)
  .filter(({ kind }) => kind === "Role" || kind === "ClusterRole");

it("every role names each verb and each resource, and reaches Secrets and ConfigMaps by their names only; to create one has no name yet", () => {
  assert.ok(ROLES.length > 10, `${ROLES.length} roles`);
  for (const role of ROLES) {
    assert.doesNotMatch(JSON.stringify(rulesOf(role)), /\*/);
    const unnamed = rulesOf(role).filter(({ resourceNames }) => resourceNames === undefined);
    const broad = unnamed.flatMap(rightsOf).filter((right) => /^(?!create ).*(?:secrets|configmaps)/.test(right));
    assert.deepEqual(broad, [], role.metadata?.name);
  }
});

it("an installation for all namespaces may do there what one for a single namespace may do in its own, and nothing else", () =>
  assert.deepEqual(
    rulesOf(find("all-namespaces/cluster-rbac.yaml", "ClusterRole", "zonewise-reconciler")),
    rulesOf(find("reconciler/rbac.yaml", "Role", "zonewise-reconciler")),
  ));

it("the role of operators has more than that of viewers, which has nothing that changes something", () => {
  const of = (name: string): string[] => rulesOf(find("cli/rbac.yaml", "ClusterRole", name)).flatMap(rightsOf);
  const viewer = of("zonewise-viewer");
  assert.deepEqual(
    viewer.filter((right) => !/^(?:get|list) /.test(right)),
    [],
  );
  const more = ["create pods/eviction", "patch phasedrollouts", "patch rolloutgates", "patch statefulsets"];
  assert.deepEqual([...viewer, ...more].toSorted(), of("zonewise-operator").toSorted());
});
