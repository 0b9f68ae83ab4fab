/** TokenReviews, by the original's cases and ours. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { judgeReview } from "../../../functions/nodes/identify-caller.ts";

const AGENTS = { namespace: "ns", account: "agent" };
const EXTRA = { "authentication.kubernetes.io/pod-name": ["p"], "authentication.kubernetes.io/pod-uid": ["u"] };
const USER = { username: "system:serviceaccount:ns:agent", extra: EXTRA };
const GOOD = { authenticated: true, audiences: ["brupop-apiserver"], user: USER };

const CASES: readonly (readonly [name: string, status: unknown, refusal?: number])[] = [
  ["authenticated for our audience", GOOD],
  ["with one audience more", { ...GOOD, audiences: ["other", "brupop-apiserver"] }],
  ["an error beside authenticated", { ...GOOD, error: "but" }, 401],
  ["authenticated false", { ...GOOD, authenticated: false }, 401],
  ["authenticated missing", { ...GOOD, authenticated: undefined }, 401],
  ["no status", undefined, 401],
  ["audiences missing: the reviewer ignored ours", { ...GOOD, audiences: undefined }, 401],
  ["no audience", { ...GOOD, audiences: [] }, 401],
  ["another audience", { ...GOOD, audiences: ["nomatch"] }, 401],
  ["another namespace", { ...GOOD, user: { ...USER, username: "system:serviceaccount:other:agent" } }, 403],
  ["no pod", { ...GOOD, user: { ...USER, extra: {} } }, 403],
  ["no extra", { ...GOOD, user: { username: USER.username } }, 403],
  [
    "an empty list",
    { ...GOOD, user: { ...USER, extra: { ...EXTRA, "authentication.kubernetes.io/pod-name": [] } } },
    403,
  ],
  [
    "two pods",
    { ...GOOD, user: { ...USER, extra: { ...EXTRA, "authentication.kubernetes.io/pod-name": ["p", "q"] } } },
    403,
  ],
];

for (const [name, status, refusal] of CASES)
  it(`a review that says ${name} ${refusal ? `is refused with ${refusal}` : "is taken"}`, () => {
    const judged = judgeReview(status, AGENTS);
    if (refusal) assert.equal("status" in judged && judged.status, refusal);
    else assert.deepEqual(judged, { name: "p", uid: "u" });
  });
