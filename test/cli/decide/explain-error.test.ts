import assert from "node:assert/strict";
import { it } from "node:test";
import { explainError } from "../../../cli/decide/explain-error.ts";
import { RolloutError, type ErrorCode, type RolloutErrorDetails } from "../../../infra/errors.ts";

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

const HINTS: readonly [code: ErrorCode, details: RolloutErrorDetails, hint: RegExp][] = [
  ["Unreachable", {}, /kubectl cluster-info/],
  ["Timeout", {}, /--request-timeout/],
  ["Unauthorized", { status: 401 }, /does not accept these credentials; .*: kubectl auth whoami/],
  ["Unauthorized", {}, /no usable credentials; no request was sent: kubectl auth whoami/],
  ["Throttled", { status: 429 }, /run the command again later/],
  ["ServerError", { status: 503 }, /another server answered: kubectl cluster-info/],
  ["NotFound", { status: 404 }, /deleted meanwhile, .*kubectl cluster-info/],
  ["WebhookFailed", { status: 500 }, /check that its pods run; zonewise doctor/],
  ["Conflict", { status: 409 }, /run the command again/],
];
for (const [code, details, hint] of HINTS)
  it(`${code}${details.status === undefined ? "" : ` (${details.status})`} is told with what to do`, () =>
    assert.match(explainError(new RolloutError(code, "list pods: it failed", details)).hint ?? "", hint));

it("the message of a credential plugin ends without its line breaks", () =>
  assert.equal(
    explainError(new RolloutError("Unauthorized", "no credentials: log in first\n")).message,
    "no credentials: log in first",
  ));
