/** What the roles of people allow. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { read } from "./manifests.ts";
import { rightsOf, type Rule } from "./rights.ts";

const ROLES = read("infra/manifests/cli/rbac.yaml");

function rightsOfRole(name: string): string[] {
  const role = ROLES.find(({ metadata }) => metadata?.name === name) ?? assert.fail(name);
  return (role["rules"] as Rule[]).flatMap(rightsOf).toSorted();
}

const OPERATOR = [
  "create pods/eviction",
  "create subjectaccessreviews",
  "patch phasedrollouts",
  "patch rolloutgates",
  "patch statefulsets",
];

it("zonewise-viewer has them all but those that change something, or ask for others' rights", () => {
  const viewer = rightsOfRole("zonewise-viewer");
  assert.deepEqual([...viewer, ...OPERATOR].toSorted(), rightsOfRole("zonewise-operator"));
  assert.deepEqual(
    viewer.filter((right) => !/^(?:get|list) /.test(right)),
    ["create selfsubjectaccessreviews"],
  );
});

it("no role reaches Secrets, and ConfigMaps only by their names", () => {
  const rules = ROLES.flatMap((role) => role["rules"] as Rule[]);
  assert.ok(!rules.some(({ resources }) => resources.includes("secrets")));
  for (const { resourceNames } of rules.filter(({ resources }) => resources.includes("configmaps")))
    assert.ok(resourceNames);
});
