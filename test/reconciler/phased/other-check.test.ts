/** Answers of an earlier query, or of an earlier default, count no longer. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { decidePhased } from "../../../reconciler/phased/decide-phased.ts";
import { readPhasedRollout } from "../../../reconciler/phased/phased-rollout.ts";
import { hashOf } from "../../../reconciler/phased/step.ts";
import { ago, empty, rolloutObject, snapshot } from "./builders.ts";
import { checking, decideIn, NEWER, table } from "./table.ts";

/** The results of two checks, and of a third that is due; they are of another query than that of the object. */
const OTHER = { checkHash: "01234567", analisysStartTime: ago(300), lastCheckTime: ago(60), lastAttemptTime: ago(60) };

const twoOfUpdated = { set: { ...NEWER, partition: 2, updated: 1 }, pods: "oon", generation: 2 };

const begunAgain = "Rolling WaitForChecks@2 0/0 due in 0 s";

table("another check", [
  [
    "successes of an earlier query do not count for the answer of the new one",
    { ...twoOfUpdated, status: checking(2, { ...OTHER, consecutiveSuccessfulChecks: 2 }), answer: empty },
    begunAgain,
  ],
  [
    "successes of an earlier query release nothing",
    { ...twoOfUpdated, status: checking(2, { ...OTHER, consecutiveSuccessfulChecks: 3 }) },
    begunAgain,
  ],
  [
    "successes of an unknown query, as of an earlier version, release nothing",
    { ...twoOfUpdated, status: checking(2, { ...OTHER, checkHash: undefined, consecutiveSuccessfulChecks: 3 }) },
    begunAgain,
  ],
  [
    "failures of an earlier query stop nothing",
    { ...twoOfUpdated, check: { failureThreshold: 2 }, status: checking(2, { ...OTHER, consecutiveFailedChecks: 2 }) },
    begunAgain,
  ],
  [
    "an error of an earlier query delays nothing",
    {
      ...twoOfUpdated,
      status: checking(2, { ...OTHER, status: "PrometheusError", consecutiveErrors: 3, lastError: "gone" }),
    },
    begunAgain,
  ],
  ["the step begins again once", { ...twoOfUpdated, status: checking(2, { checkHash: undefined }) }, "check"],
]);

it("a step that was promoted stays so under another check, and its pod is released", () => {
  const stored = checking(2, { ...OTHER, promoted: true, consecutiveSuccessfulChecks: 1 });
  const decision = decidePhased(snapshot({ ...twoOfUpdated, status: stored }));
  assert.ok(decision.action === "report");
  const { status } = decision;
  assert.equal(decideIn({ ...twoOfUpdated, status }), "release db-1 by partition 1");
});

it("an edit of the expression, the server, its Secret, or a new default of successWhen make another check; thresholds and times do not", () => {
  const base = { expr: "up == 0", url: "http://prom" };
  const hashed = (query: object, check: object = {}, byDefault: "NoData" | "Data" = "NoData"): string =>
    hashOf(readPhasedRollout(rolloutObject({ query: { ...base, ...query }, check }), byDefault).check);
  const others = [
    hashed({ expr: "up" }),
    hashed({ url: "http://other" }),
    hashed({ secretRef: "s" }),
    hashed({ insecureSkipVerify: true }),
    hashed({}, {}, "Data"),
  ];
  assert.equal(new Set([hashed({}), ...others]).size, 6);
  const more = { initialDelaySeconds: 5, periodSeconds: 5, successThreshold: 9, failureThreshold: 9 };
  assert.equal(hashed({ successWhen: "NoData" }, more), hashed({}));
  assert.equal(hashed({ insecureSkipVerify: false, secretRef: "", caBundle: null }), hashed({}), "no fields of it");
});
