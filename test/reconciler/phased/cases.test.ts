/** What the next write for a PhasedRollout is, where the original says nothing of it, or does worse (§16). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkHash, decide, lacksCandidate, placeholdersOf, SAMPLE_VALUES } from "./adapter.ts";
import { ago, data, empty, NEW, OLD, rolling, rolloutObject, type RolloutTraits } from "../../builders/phased.ts";
import { factsOf, type Scene } from "./scene.ts";
import {
  checking,
  decideIn,
  delaying,
  done,
  held,
  NEWER,
  passed,
  released,
  reverted,
  ROLLED_BACK,
  table,
} from "./table.ts";

const FINAL = { spec: { finalCheck: true } };

table("better than the original", [
  [
    "a pod that is lost during the initial delay begins the step again",
    held("oo!o", delaying(3, 20)),
    "WaitForAllPodsToBeAvailable@3",
  ],
  ["a pod that is lost after the last success, too", held("oo!o", passed(3)), "WaitForAllPodsToBeAvailable@3"],
  [
    "a status that counts fewer pods than there are is believed",
    { set: { ...NEWER, available: 2 }, status: checking(3) },
    "WaitForAllPodsToBeAvailable@3",
  ],
  [
    "a pod that the status still counts, but is terminating, is not there",
    held("oo-o", checking(3)),
    "WaitForAllPodsToBeAvailable@3",
  ],
  [
    "with failureThreshold the rollout stalls",
    held("ooo", checking(3, { consecutiveFailedChecks: 2, lastAttemptTime: ago(99) }), {
      check: { failureThreshold: 2 },
    }),
    "Stalled True/Ready False/ChecksFailed WaitForChecks@3 0/2 checks True",
  ],
  [
    "after progressDeadlineSeconds it is stalled and goes on",
    held("ooo", checking(3, { lastAttemptTime: ago(60) }), { spec: { progressDeadlineSeconds: 100 }, answer: empty }),
    "Stalled True/Ready False/ProgressDeadlineExceeded WaitForChecks@3 1/0 checks True due in 60 s",
  ],
  [
    "before the deadline the next read is not later than it",
    held("ooo", checking(3, { lastAttemptTime: ago(1) }), { spec: { progressDeadlineSeconds: 310 } }),
    "WaitForChecks@3 checks True due in 10 s",
  ],
  [
    "the last pod has a deadline, too",
    released(0, "n!nn", rolling(0), { spec: { progressDeadlineSeconds: 100 } }),
    "Stalled True/Ready False/ProgressDeadlineExceeded WaitForAllPodsToBeAvailable@0",
  ],
  [
    "after the clock was turned back the step begins again: its successes would never be too old",
    held(
      "ooo",
      checking(3, { consecutiveSuccessfulChecks: 3, lastAttemptTime: ago(-3600), lastCheckTime: ago(-3600) }),
    ),
    "WaitForPodToBeUpdated@3 due in 0 s",
  ],
  ["and its delay would last for ever", held("ooo", delaying(3, -3600)), "WaitForPodToBeUpdated@3 due in 0 s"],
  [
    "a clock that is a little behind that of the process before begins nothing again",
    held("ooo", checking(3, { consecutiveSuccessfulChecks: 3, lastAttemptTime: ago(-5), lastCheckTime: ago(-5) })),
    "release db-2 by partition 2",
  ],
  [
    "a delay of 0 is 0",
    held("ooo", rolling(3), { check: { initialDelaySeconds: 0 } }),
    "WaitForInitialDelay@3 due in 0 s",
  ],
  ["a threshold of 0 is refused", { check: { successThreshold: 0 } }, "ErrorCannotManage"],
  [
    "skipCheck and its other name differ: neither of them counts",
    { spec: { skipCheck: true, standardRollingUpdate: false } },
    "ErrorCannotManage",
  ],
  ["an empty targetRef names no StatefulSet", { set: null, spec: { targetRef: "" } }, "ErrorSTSNotFound"],
  [
    "pods are counted from the first ordinal",
    {
      set: { ...NEWER, start: 5, partition: 2 },
      pods: "oon",
      status: passed(2),
    },
    "release db-6 by partition 1",
  ],
  [
    "a StatefulSet that is being deleted is not written",
    { set: { terminating: true, owner: undefined }, finalizers: [] },
    "ErrorSTSNotFound",
  ],
  ["nor given back", { set: { terminating: true }, terminating: true }, "dropFinalizer"],
  ["outside a rollout there is no step", { set: null, status: rolling(2) }, "ErrorSTSNotFound"],
  ["with finalCheck the last step is checked as well", done(rolling(0), FINAL), "WaitForInitialDelay@0 due in 60 s"],
  [
    "a failed final check holds the completion",
    done(checking(0, { lastAttemptTime: ago(60) }), { ...FINAL, answer: data }),
    "WaitForChecks@0 0/1 checks True due in 60 s",
  ],
  ["after the last success it is complete", done(passed(0), FINAL), "Updated"],
  ["a rollback has none", { set: { partition: 3 }, ...FINAL, status: ROLLED_BACK }, "Updated"],
]);

table("what else holds", [
  [
    "a zone of a rollout group is left to its group",
    { set: { labels: { "rollout-group": "db" }, owner: undefined }, finalizers: [] },
    "ErrorCannotManage",
  ],
  [
    "an old success releases nothing",
    held("ooo", checking(3, { consecutiveSuccessfulChecks: 3, lastCheckTime: ago(121), lastAttemptTime: ago(121) })),
    "WaitForChecks@3 checks True due in 0 s",
  ],
  [
    "while the spec is not observed a rollout waits",
    { set: { ...NEWER, observed: false, partition: 2 }, status: checking(3, { consecutiveSuccessfulChecks: 3 }) },
    "WaitForChecks@3 3/0",
  ],
  [
    "a threshold that is lowered counts at once",
    held("ooo", checking(3, { consecutiveSuccessfulChecks: 1, lastCheckTime: ago(1), lastAttemptTime: ago(1) }), {
      check: { successThreshold: 1 },
    }),
    "release db-2 by partition 2",
  ],
]);

it("the message of ErrorCannotManage names the winner; of a zone, the RolloutGate", () => {
  const messageOf = (scene: Scene): string | undefined => {
    const decision = decide(factsOf(scene));
    return decision.action === "report" ? decision.status.conditions[0]?.message : undefined;
  };
  assert.match(messageOf({ set: { owner: "other" }, other: { name: "other" } }) ?? "", /PhasedRollout other/);
  assert.match(messageOf({ set: { labels: { "rollout-group": "" } } }) ?? "", /RolloutGate/);
});

const PAUSED = { "sts.plus/pause": "true" };

const promote = (step: string): Scene => ({ annotations: { "sts.plus/promote-step": step } });

table("pausing and promoting by hand", [
  ["a paused rollout checks nothing", held("ooo", checking(3), { annotations: PAUSED }), "Paused@3"],
  ["and releases nothing that was checked before", held("ooo", passed(3), { annotations: PAUSED }), "Paused@3"],
  ["only `true` pauses", held("ooo", checking(3), { annotations: { "sts.plus/pause": "yes" } }), "check"],
  [
    "after the pause the step begins again",
    held("ooo", rolling(3, { status: "Paused" })),
    "WaitForInitialDelay@3 due in 60 s",
  ],
  [
    "a rollback does not wait for the end of a pause",
    { ...reverted(3, "onn"), annotations: PAUSED },
    "partition 2 RollBack",
  ],
  [
    "a promotion is written down first",
    held("ooo", rolling(3), promote(`${NEW}/3`)),
    `WaitForPodToBeUpdated@3 promoted ${NEW}/3 due in 0 s`,
  ],
  [
    "a promoted step needs no check",
    held("ooo", rolling(3, { promoted: true }, { promotedStep: `${NEW}/3` }), promote(`${NEW}/3`)),
    "release db-2 by partition 2",
  ],
  [
    "not even in a pause, or after its checks have failed",
    held("ooo", rolling(3, { promoted: true, consecutiveFailedChecks: 1 }, { promotedStep: `${NEW}/3` }), {
      annotations: { ...PAUSED, "sts.plus/promote-step": `${NEW}/3` },
      check: { failureThreshold: 1 },
    }),
    "release db-2 by partition 2",
  ],
  ["a step is promoted once", held("ooo", { ...checking(3), promotedStep: `${NEW}/3` }, promote(`${NEW}/3`)), "check"],
  ["a promotion of another revision is ignored", held("ooo", checking(3), promote(`${OLD}/3`)), "check"],
  ["a promotion of another partition is ignored", held("ooo", checking(3), promote(`${NEW}/2`)), "check"],
  [
    "a promoted step still waits for its pods",
    held("o!oo", rolling(3, { promoted: true }), promote(`${NEW}/3`)),
    `WaitForAllPodsToBeAvailable@3`,
  ],
  [
    "a promotion is remembered as long as the annotation has it",
    { ...promote(`${NEW}/3`), status: { phase: "Updated", promotedStep: `${NEW}/3` } },
    `Updated promoted ${NEW}/3`,
  ],
  [
    "and then forgotten, so that the same step of a later rollout can be promoted again",
    { status: { phase: "Updated", promotedStep: `${NEW}/3` } },
    "Updated",
  ],
]);

/** The results of two checks, and of a third that is due; they are of another query than that of the object. */
const OTHER = { checkHash: "01234567", analisysStartTime: ago(300), lastCheckTime: ago(60), lastAttemptTime: ago(60) };

const twoOfUpdated = { set: { ...NEWER, partition: 2, updated: 1 }, pods: "oon", generation: 2 };

const begunAgain = "WaitForChecks@2 due in 0 s";

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
  const decision = decide(factsOf({ ...twoOfUpdated, status: stored }));
  assert.ok(decision.action === "report");
  const { status } = decision;
  assert.equal(decideIn({ ...twoOfUpdated, status }), "release db-1 by partition 1");
});

const CANDIDATE = 'sum(errors{pod=~"$(candidate_pods)"})';
const OTHERS = 'sum(errors{pod=~"$(other_pods)"})';
const baseline = { expr: OTHERS, maxRatio: "2" };
const comparing = (more: object = {}): RolloutTraits => ({
  check: {
    baseline: { ...baseline, ...more },
    query: { url: "http://prom", expr: CANDIDATE, successWhen: "WithinBaseline" },
  },
});

it("an edit of the expression, the server, its Secret, the baseline, or a new default of successWhen make another check; thresholds and times do not", () => {
  const base = { expr: "up == 0", url: "http://prom" };
  const hashed = (query: object, check: object = {}, byDefault?: "Data"): string =>
    checkHash(rolloutObject({ query: { ...base, ...query }, check }), byDefault);
  const others = [
    hashed({ expr: "up" }),
    hashed({ url: "http://other" }),
    hashed({ secretRef: "s" }),
    hashed({ insecureSkipVerify: true }),
    hashed({}, {}, "Data"),
    checkHash(rolloutObject(comparing())),
    checkHash(rolloutObject(comparing({ maxRatio: "3" }))),
  ];
  assert.equal(new Set([hashed({}), ...others]).size, 8);
  const more = { initialDelaySeconds: 5, periodSeconds: 5, successThreshold: 9, failureThreshold: 9 };
  assert.equal(hashed({ successWhen: "NoData" }, more), hashed({}));
  assert.equal(hashed({ insecureSkipVerify: false, secretRef: "", caBundle: null }), hashed({}), "no fields of it");
});

describe("what the placeholders of a PhasedRollout stand for", () => {
  const pods = (...ordinals: number[]) => ({ kind: "pods", sets: [{ set: "db", ordinals }] });
  for (const [name, partition, text, start, candidate, other] of [
    ["one pod of three", 2, "oon", 0, pods(2), pods(0, 1)],
    ["two pods of three", 1, "onn", 0, pods(1, 2), pods(0)],
    ["all pods", 0, "nnn", 0, pods(0, 1, 2), pods()],
    ["no pod", 3, "ooo", 0, pods(), pods(0, 1, 2)],
    ["pods that begin at another ordinal", 2, "oon", 5, pods(7), pods(5, 6)],
  ] as const)
    it(name, () => {
      const status = checking(partition, { analisysStartTime: ago(300) });
      const values = placeholdersOf(factsOf({ set: { ...NEWER, partition, start }, pods: text, status }));
      assert.deepEqual([values["candidate_pods"], values["other_pods"]], [candidate, other]);
      assert.deepEqual(Object.keys(values).toSorted(), Object.keys(SAMPLE_VALUES).toSorted());
      assert.deepEqual(values["statefulset"], { kind: "name", name: "db" });
      assert.deepEqual(values["range"], { kind: "duration", seconds: 300 }, "since all pods were available");
    });
});

describe("a check with a baseline", () => {
  const ofAll = { url: "prom", expr: "sum(errors)", successWhen: "WithinBaseline" };
  for (const [name, traits, text, expected] of [
    ["before the first pod", comparing(), "ooo", true],
    ["once a pod is updated", comparing(), "oon", false],
    ["if it compares all pods with the time before", { check: { ...comparing().check, query: ofAll } }, "ooo", false],
    ["without a baseline", {}, "ooo", false],
  ] as const satisfies readonly (readonly [string, RolloutTraits, string, boolean])[])
    it(`${expected ? "has" : "lacks"} no candidate ${name}`, () =>
      assert.equal(lacksCandidate(factsOf({ ...traits, set: NEWER, pods: text })), expected));
});
