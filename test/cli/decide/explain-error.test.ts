import assert from "node:assert/strict";
import { it } from "node:test";
import { explainError } from "../../../cli/decide/explain-error.ts";
import { RolloutError } from "../../../infra/errors.ts";

const CASES = [
  {
    error: `list rolloutgroups cache: rolloutgroups.zonewise.dev is forbidden: User "ann" cannot list resource "rolloutgroups" in API group "zonewise.dev" in the namespace "cache" (403 Forbidden)`,
    message: "ann may not list rolloutgroups.zonewise.dev in namespace cache",
    role: "zonewise-viewer",
  },
  {
    error: `patch statefulsets cache/zone-a: statefulsets.apps "zone-a" is forbidden: User "ann" cannot patch resource "statefulsets" in API group "apps" in the namespace "cache" (403 Forbidden)`,
    message: "ann may not patch statefulsets.apps in namespace cache",
    role: "zonewise-operator",
  },
  {
    error: `list nodes: nodes is forbidden: User "ann" cannot list resource "nodes" in API group "" at the cluster scope (403 Forbidden)`,
    message: "ann may not list nodes in the whole cluster",
    role: "zonewise-viewer",
  },
];

for (const { error, message, role } of CASES)
  it(`a missing right is told with its verb and its resource: ${message}`, () => {
    const told = explainError(new RolloutError("Forbidden", error));
    assert.equal(told.message, message);
    assert.match(told.hint ?? "", new RegExp(role));
  });

it("a refusal of a webhook is told as it is", () =>
  assert.deepEqual(explainError(new RolloutError("Forbidden", "patch: admission webhook denied the request")), {
    message: "patch: admission webhook denied the request",
  }));

it("an API server that cannot be reached is told with a hint", () =>
  assert.match(explainError(new RolloutError("Unreachable", "list: connect ECONNREFUSED")).hint ?? "", /kubectl cluster-info/));
