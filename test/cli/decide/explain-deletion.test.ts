/** What `zonewise explain` says that `kubectl delete pod` would get, by what guards deletions (§5.12). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { explainDeletion } from "../../../cli/decide/explain-deletion.ts";
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import type { DeletionGuard } from "../../../cli/decide/deletion-guard.ts";
import { withBudget } from "./worlds.ts";

const WELL = withBudget([{}, {}, {}], {});
const ILL = withBudget([{}, { pods: { 1: { ready: false } } }, {}], {});
const POD = "ingester-zone-a-0";
const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "ingester-zone-a", uid: "s", controller: true };
type Metadata = NonNullable<PodObject["metadata"]>;
const object = (metadata: Partial<Metadata> = {}): PodObject => ({
  metadata: { name: POD, labels: { "rollout-group": "ingester" }, ownerReferences: [owner], ...metadata },
});
const guard = (by: DeletionGuard["by"], remedy = ""): DeletionGuard => ({ by, message: `it is ${by}`, remedy });
const LET_GO = /let it go: kubectl -n test annotate pod ingester-zone-a-0 zonewise\/delete-by-hand=true$/;

const CASES: readonly (readonly [
  what: string,
  by: DeletionGuard["by"],
  world: typeof WELL,
  metadata: Partial<Metadata>,
  reason: string,
  says: RegExp,
])[] = [
  [
    "nothing guards it, and all zones are well",
    "none",
    WELL,
    {},
    "",
    /^it is none; to have it refused in a second zone: /,
  ],
  ["nobody knows, and all zones are well", "unknown", WELL, {}, "", /^it is unknown$/],
  [
    "nothing guards it, and another zone is ill",
    "none",
    ILL,
    {},
    "BudgetSpent",
    /ingester-zone-b; nothing would refuse the deletion: it is none$/,
  ],
  [
    "nobody knows, and another zone is ill",
    "unknown",
    ILL,
    {},
    "BudgetSpent",
    /ingester-zone-b; it could not be read whether anything would refuse the deletion: it is unknown$/,
  ],
  ["the policy guards it", "policy", WELL, {}, "DeletionPolicy", /^it is policy$/],
  ["the webhook is down", "down", WELL, {}, "WebhookDown", /^it is down$/],
  ["the webhook guards it, and all zones are well", "webhook", WELL, {}, "", /^the budget has room .*; it is webhook$/],
  [
    "the webhook guards it, and another zone is ill",
    "webhook",
    ILL,
    {},
    "BudgetSpent",
    /ingester-zone-b; it is webhook$/,
  ],
  ["it is let go", "policy", ILL, { annotations: { "zonewise/delete-by-hand": "true" } }, "", /lets it go/],
  ["it is terminating", "webhook", ILL, { deletionTimestamp: "2026-01-01T00:00:00Z" }, "", /takes nothing$/],
  ["it lacks the label", "webhook", ILL, { labels: {} }, "", /^no guard sees a pod without the label rollout-group/],
];

describe("a deletion by hand, where", () => {
  for (const [what, by, world, metadata, reason, says] of CASES)
    it(`${what}: ${reason === "" ? "yes" : reason}`, () => {
      const pod = world.zones.flatMap(({ pods }) => pods).find(({ name }) => name === POD) ?? assert.fail();
      const answer = explainDeletion(object(metadata), pod, { guard: guard(by), world });
      assert.deepEqual([answer.question, answer.allowed, answer.reason], ["delete by hand", reason === "", reason]);
      assert.match(answer.message, says);
      assert.equal(answer.informs, true, "no exit code counts it");
      const isRefused = !answer.allowed && !["none", "unknown"].includes(by);
      assert.equal(LET_GO.test(answer.remedy), isRefused, "the annotation is proposed where a guard obeys it");
    });

  for (const by of ["none", "unknown"] as const)
    it(`its guard is "${by}" and the budget says no: what would guard it is proposed`, () => {
      const pod = ILL.zones.flatMap(({ pods }) => pods).find(({ name }) => name === POD) ?? assert.fail();
      const { remedy } = explainDeletion(object(), pod, { guard: guard(by, "apply one"), world: ILL });
      assert.match(remedy, /; to have it refused: apply one$/);
    });
});
