/** The roles of people allow what the CLI calls, and nothing else. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { read } from "./manifests.ts";
import { findUsedRights, rightsOf, type Rule } from "./rights.ts";

const ROLES = read("infra/manifests/cli/rbac.yaml");

function rightsOfRole(name: string): string[] {
  const role = ROLES.find(({ metadata }) => metadata?.name === name) ?? assert.fail(name);
  return (role["rules"] as Rule[]).flatMap(rightsOf).toSorted();
}

/** Of files whose other half writes; the CLI reads only. `/version` is no resource: every user may read it. */
const NEVER_CALLED =
  /^(?:create|update) leases$|^update zoneawarepoddisruptionbudgets\/status$|^get phasedrollouts$|^get version$/;
/** Calls that name their resource by a variable, or that follow another one in the same expression. */
const MORE = [
  "nodes",
  "poddisruptionbudgets",
  "validatingwebhookconfigurations",
  "mutatingwebhookconfigurations",
  "mutatingadmissionpolicies",
  "validatingadmissionpolicybindings",
].map((resource) => `list ${resource}`);
const OPERATOR = [
  "create pods/eviction",
  "create subjectaccessreviews",
  "patch phasedrollouts",
  "patch rolloutgates",
  "patch statefulsets",
];

it("zonewise-operator has the rights that the CLI uses, and no others", async () => {
  const used = [...(await findUsedRights("cli/main.ts"))].filter((right) => !NEVER_CALLED.test(right));
  assert.deepEqual(rightsOfRole("zonewise-operator"), [...new Set([...used, ...MORE, ...OPERATOR])].toSorted());
});

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
