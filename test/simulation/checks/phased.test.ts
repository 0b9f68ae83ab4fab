/** The oracles of PhasedRollouts' statuses and of partitions against what they must condemn, and what is next to it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import { createHistory, createReads } from "./history.ts";
import { PHASED, PHASED_CHECK, PHASED_ROLLOUTS, phasedObject } from "./objects.ts";
import { createPartitionSafety } from "./partitions.ts";
import { BUDGET_KEY, HELD, PHASED_READS, ROLLOUT_KEY } from "./phased-set.ts";
import { createPhasedStatusSafety } from "./phased-statuses.ts";
import type { Verdict } from "./prometheus.ts";

const NOW = Date.parse("2026-01-01T01:00:00Z");
const [UID, REVISION] = ["set-1", "new"];
const RECONCILER: Caller = { actor: "reconciler-1", call: "", sentAt: NOW - 1 };

const object = (name: string, rest: object, metadata: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  metadata: {
    name,
    namespace: NAMESPACE,
    uid: name,
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:30:00Z",
    ...metadata,
  },
  ...rest,
});

interface SetGiven {
  readonly partition?: number;
  readonly replicas?: number;
  readonly available?: number;
  readonly observed?: number;
  readonly generation?: number;
  readonly current?: string;
  readonly type?: string;
  readonly image?: number;
  readonly group?: boolean;
  readonly ordered?: boolean;
  readonly start?: number;
  readonly claim?: boolean;
}

const setOf = ({
  partition = HELD,
  replicas = 3,
  available = replicas,
  observed = 5,
  generation = 5,
  current = "old",
  type = "RollingUpdate",
  image = 1,
  group = false,
  ordered = true,
  start: first = 0,
  claim = true,
}: SetGiven = {}): KubeObject =>
  object(
    PHASED,
    {
      spec: {
        replicas,
        podManagementPolicy: ordered ? "OrderedReady" : "Parallel",
        template: { image },
        ordinals: { start: first },
        updateStrategy: { type, ...(type === "RollingUpdate" && { rollingUpdate: { partition } }) },
      },
      status: {
        observedGeneration: observed,
        replicas,
        availableReplicas: available,
        updatedReplicas: Math.max(0, replicas - partition),
        currentRevision: current,
        updateRevision: REVISION,
      },
    },
    {
      uid: UID,
      generation,
      annotations: claim ? { "sts.plus/phasedRollout": PHASED } : {},
      ...(group && { labels: { "rollout-group": "other" } }),
    },
  );

const CRASHING = { ready: false, crashes: true };
const podOf = (
  index: number,
  revision: string,
  more: { ready?: boolean; since?: string; created?: string; crashes?: boolean } = {},
): KubeObject =>
  object(
    `${PHASED}-${index}`,
    {
      status: {
        conditions: [
          { type: "Ready", status: more.ready === false ? "False" : "True", lastTransitionTime: more.since },
        ],
      },
    },
    {
      labels: { "controller-revision-hash": revision },
      ownerReferences: [{ uid: UID }],
      creationTimestamp: more.created ?? "2026-01-01T00:40:00Z",
      ...(more.crashes && { annotations: { "sim/crash": "true" } }),
    },
  );
const podsOf = (...revisions: readonly string[]): KubeObject[] => revisions.map((one, i) => podOf(i, one));

const statusOf = (step: object | undefined, rest: object = {}): object => ({
  phase: "Rolling",
  targetUID: UID,
  targetObservedGeneration: 5,
  updateRevision: REVISION,
  ...(step && { rollingPodStatus: { status: "WaitForPodToBeUpdated", consecutiveSuccessfulChecks: 0, ...step } }),
  ...rest,
});
const rolloutOf = (status: object, expr?: string, spec: object = {}): KubeObject => {
  const shape = {
    successWhen: "NoData",
    initialDelaySeconds: 0,
    periodSeconds: 10,
    successThreshold: 2,
    failureThreshold: undefined,
    last: "good",
    ordered: true,
    finalCheck: false,
  } as const;
  return object(PHASED, { spec: { ...(phasedObject(shape, expr)["spec"] as object), ...spec }, status });
};

interface Given {
  readonly before?: object;
  readonly after: object;
  readonly set?: SetGiven;
  readonly pods?: readonly KubeObject[];
  readonly told?: Verdict;
  /** The query that a person has written since the status before. */
  readonly expr?: string;
  /** The status before is younger than the StatefulSet as it is. */
  readonly isLater?: boolean;
}

/** A world that has been as it is for a minute, and was read a second ago. */
function start(set: KubeObject, pods: readonly KubeObject[], told?: Verdict) {
  const violations: string[] = [];
  let time = NOW - 60_000;
  const now = (): number => time;
  const [history, reads] = [createHistory(now), createReads(now)];
  const options = {
    violated: (what: string) => void violations.push(what),
    now,
    history,
    reads,
    toldOf: (expr: string) => (told === undefined ? [] : [{ at: NOW, expr, verdict: told }]),
    misjudgedMs: 0,
    isQuiet: () => true,
  };
  const oracle = createPhasedStatusSafety(options);
  const partitions = createPartitionSafety({ ...options, counted: oracle.counted });
  oracle.onEvent({ type: "ADDED", resource: "statefulsets.apps", object: set }, undefined);
  history.note(PHASED, set);
  for (const pod of pods) history.note(pod.metadata.name, pod);
  const read = (): void => {
    time = NOW - 1000;
    reads.note({ ...RECONCILER, sentAt: time }, PHASED_READS.rollout);
    time = NOW;
  };
  return { oracle, partitions, history, read, violations };
}

function judge({ before = statusOf({ partition: 3 }), after, set, pods = [], told, expr, isLater }: Given): string {
  const { oracle, history, read, violations } = start(setOf(set), pods, told);
  const write = (from: object, to: object, query?: string): void => {
    const [previous, next] = [rolloutOf(from, query), rolloutOf(to, query)];
    if (isLater) read();
    history.note(ROLLOUT_KEY, previous);
    read();
    oracle.onEvent({ type: "MODIFIED", resource: PHASED_ROLLOUTS, object: next, previous }, RECONCILER);
  };
  if (expr !== undefined) write(statusOf({ partition: 3 }), before);
  write(before, after, expr);
  return violations.join("; ");
}

const answered = (count: number, minute: number, more: object = {}): object => ({
  partition: 3,
  consecutiveSuccessfulChecks: count,
  lastAttemptTime: `2026-01-01T00:${minute}:00Z`,
  ...more,
});
const BACK = { conditions: [{ type: "Updated", status: "False", reason: "RollingBack" }] };
const DONE = { phase: "Updated", conditions: [{ type: "Updated", status: "True", reason: "Updated" }] };
const [OLD, MIXED, NEW] = [
  podsOf("old", "old", "old"),
  podsOf("old", "old", REVISION),
  podsOf(REVISION, REVISION, REVISION),
];
const HALF = { partition: 2 };

const STATUSES: readonly (readonly [what: string, Given, expected: RegExp | undefined])[] = [
  ["a step of the partition", { before: statusOf(undefined), after: statusOf({ partition: 3 }) }, undefined],
  ["a step of another one", { after: statusOf({ partition: 1 }), set: HALF }, /a step of partition 1, .* 2/],
  ["a partition that a scale-out reaches", { after: statusOf(answered(0, 50)), set: { partition: 3 } }, /reaches/],
  [
    "another template that is released",
    { before: statusOf(HALF, { updateRevision: "second" }), after: statusOf(HALF), set: HALF },
    /begins another template at partition 2/,
  ],
  [
    "another template that is held",
    { before: statusOf(HALF, { updateRevision: "second" }), after: statusOf({ partition: 3 }) },
    undefined,
  ],
  [
    "partition 0 of outdated pods",
    { before: statusOf(undefined), after: statusOf({ partition: 0 }), set: { partition: 0 }, pods: OLD },
    /partition 0 although pods are outdated/,
  ],
  [
    "partition 0 of updated pods",
    { before: statusOf(undefined), after: statusOf({ partition: 0 }), set: { partition: 0 }, pods: NEW },
    undefined,
  ],
  ["a lower step that has not passed", { after: statusOf(HALF), set: HALF }, /the step at 3 has not passed/],
  [
    "one whose status tells of the StatefulSet as it was before",
    { after: statusOf(HALF), set: HALF, isLater: true },
    undefined,
  ],
  [
    "one whose spec was edited since it passed",
    { after: statusOf(HALF, { observedGeneration: 2 }), set: HALF },
    undefined,
  ],
  ["a lower step after checks", { before: statusOf(answered(2, 50)), after: statusOf(HALF), set: HALF }, undefined],
  [
    "pods on their way back that are older than the StatefulSet",
    {
      after: statusOf(undefined, BACK),
      pods: [0, 1, 2].map((i) => podOf(i, "old", { created: "2026-01-01T00:20:00Z" })),
    },
    /db-0 is older than the StatefulSet/,
  ],
  ["pods on their way back", { after: statusOf(undefined, BACK), pods: OLD }, undefined],
  ["a rollout that is over with outdated pods", { after: statusOf(undefined, DONE), pods: MIXED }, /and db-0 is not/],
  ["a rollout that is over", { after: statusOf(undefined, DONE), pods: NEW }, undefined],
  ["a success that nobody has answered", { after: statusOf(answered(1, 50)), told: "Error" }, /that nobody has/],
  ["a success", { after: statusOf(answered(1, 50)), told: "Success" }, undefined],
  ["two successes by one answer", { after: statusOf(answered(2, 50)), told: "Success" }, /an answer twice/],
  [
    "answers to two queries",
    { before: statusOf(answered(1, 50)), after: statusOf(answered(2, 51)), told: "Success", expr: "other" },
    /adds an answer to other to those to phased/,
  ],
  [
    "answers to one query",
    { before: statusOf(answered(1, 50)), after: statusOf(answered(2, 51)), told: "Success", expr: PHASED_CHECK },
    undefined,
  ],
  [
    "checks while a pod is outdated",
    { before: statusOf(HALF), after: statusOf({ ...HALF, status: "WaitForInitialDelay" }), set: HALF, pods: OLD },
    /says WaitForInitialDelay at partition 2, and a pod is not updated/,
  ],
  [
    "checks while a pod is not ready",
    {
      before: statusOf(HALF),
      after: statusOf({ ...HALF, status: "WaitForChecks" }),
      set: HALF,
      pods: [podOf(0, "old", { ready: false }), ...MIXED.slice(1)],
    },
    /says WaitForChecks at partition 2, and a pod is not ready/,
  ],
  [
    "checks while the next pod crashes, which only its release cures",
    {
      before: statusOf(HALF),
      after: statusOf({ ...HALF, status: "WaitForChecks" }),
      set: HALF,
      pods: [podOf(0, "old"), podOf(1, "old", CRASHING), ...MIXED.slice(2)],
    },
    undefined,
  ],
  [
    "checks while the next pod has not worked for long",
    {
      before: statusOf(HALF),
      after: statusOf({ ...HALF, status: "WaitForChecks" }),
      set: HALF,
      pods: [podOf(0, "old"), podOf(1, "old", { ready: false, since: "2026-01-01T00:41:00Z" }), ...MIXED.slice(2)],
    },
    undefined,
  ],
  [
    "checks while the next pod has not been ready for a moment",
    {
      before: statusOf(HALF),
      after: statusOf({ ...HALF, status: "WaitForChecks" }),
      set: HALF,
      pods: [podOf(0, "old"), podOf(1, "old", { ready: false, since: "2026-01-01T00:59:00Z" }), ...MIXED.slice(2)],
    },
    /says WaitForChecks at partition 2, and a pod is not ready/,
  ],
  [
    "checks while a pod crashes below one that serves",
    {
      before: statusOf(HALF),
      after: statusOf({ ...HALF, status: "WaitForChecks" }),
      set: HALF,
      pods: [podOf(0, "old", CRASHING), podOf(1, "old"), ...MIXED.slice(2)],
    },
    /says WaitForChecks at partition 2, and a pod is not ready/,
  ],
  [
    "checks with all pods",
    { before: statusOf(HALF), after: statusOf({ ...HALF, status: "WaitForChecks" }), set: HALF, pods: MIXED },
    undefined,
  ],
  ["a zone of a group", { after: statusOf(undefined), set: { group: true } }, /about what it cannot manage/],
  [
    "a zone of a group that it leaves alone",
    { after: statusOf(undefined, { phase: "ErrorCannotManage" }), set: { group: true } },
    undefined,
  ],
  [
    "a spec that is not observed",
    { after: statusOf({ partition: 3, status: "WaitForInitialDelay" }), set: { generation: 6 } },
    /about a spec that is not observed/,
  ],
];

const PASSED_AT_3 = statusOf({ ...answered(2, 50) });
const BACK_AGAIN: SetGiven = { current: REVISION, partition: HELD };
const OWN = [0, 1, 2].map((i) => podOf(i, i === 2 ? "old" : REVISION));
const NEXT_STATUSES: typeof STATUSES = [
  [
    "a lower step that passes over a pod without checks",
    { before: PASSED_AT_3, after: statusOf({ partition: 1 }), set: { partition: 1 }, pods: OLD },
    /at partition 1 after 3, and nobody has checked db-2/,
  ],
  [
    "a lower step that passes over an updated pod",
    { before: PASSED_AT_3, after: statusOf({ partition: 1 }), set: { partition: 1 }, pods: MIXED },
    undefined,
  ],
  [
    "answers about another StatefulSet",
    { before: statusOf(answered(1, 50), { targetUID: "set-0" }), after: statusOf(answered(1, 50)) },
    /keeps answers about another StatefulSet/,
  ],
  ["answers about the same one", { before: statusOf(answered(1, 50)), after: statusOf(answered(1, 50)) }, undefined],
  [
    "a time that is to come",
    { after: statusOf({ partition: 3, stepStartTime: "2026-01-01T01:02:00Z" }) },
    /keeps stepStartTime .* which is to come/,
  ],
  ["a time in this minute", { after: statusOf({ partition: 3, stepStartTime: "2026-01-01T01:00:30Z" }) }, undefined],
  [
    "checks of pods on their way back",
    {
      before: statusOf({ partition: 2 }, { updateRevision: "second" }),
      after: statusOf({ partition: 3 }),
      set: BACK_AGAIN,
      pods: OWN,
    },
    /checks pods of a template that was taken back/,
  ],
  [
    "checks of pods that are older than their StatefulSet",
    {
      before: statusOf({ partition: 2 }, { updateRevision: "second" }),
      after: statusOf({ partition: 3 }),
      set: BACK_AGAIN,
      pods: [0, 1, 2].map((i) => podOf(i, "old", { created: "2026-01-01T00:20:00Z" })),
    },
    undefined,
  ],
  [
    "a way back of a StatefulSet that it has not seen",
    { before: statusOf(undefined, { targetUID: undefined }), after: statusOf(undefined, BACK), pods: OLD },
    /a revision of which it knows nothing/,
  ],
  [
    "a StatefulSet of which nothing is observed",
    {
      before: statusOf(undefined, { ...DONE, targetUID: "set-0" }),
      after: statusOf(undefined, { phase: "Updated", updateRevision: undefined }),
    },
    /records a StatefulSet of which nothing is observed/,
  ],
];

describe("the oracle of PhasedRollouts' statuses", () => {
  for (const [what, given, expected] of NEXT_STATUSES)
    it(`${expected ? "condemns" : "accepts"} ${what}`, () => {
      assert.match(judge(given), expected ?? /^$/);
    });
  for (const [what, given, expected] of STATUSES)
    it(`${expected ? "condemns" : "accepts"} ${what}`, () => {
      assert.match(judge(given), expected ?? /^$/);
    });
});

it("accepts a step that a status tells of again, after one by an old read", () => {
  const { oracle, history, read, violations } = start(setOf(HALF), []);
  const older = statusOf({ partition: 3 }, { targetObservedGeneration: 4 });
  const write = (from: object, to: object): void => {
    const [previous, next] = [rolloutOf(from), rolloutOf(to)];
    history.note(ROLLOUT_KEY, previous);
    read();
    oracle.onEvent({ type: "MODIFIED", resource: PHASED_ROLLOUTS, object: next, previous }, RECONCILER);
  };
  write(statusOf(answered(2, 50)), statusOf(HALF));
  write(statusOf(HALF), older);
  write(older, statusOf(HALF));
  assert.deepEqual(violations, []);
});

describe("the oracle of partitions", () => {
  const passed = rolloutOf(statusOf(answered(2, 50)));
  const paused = (more: object): KubeObject => {
    const rollout = rolloutOf(statusOf(answered(2, 50, more)));
    return { ...rollout, metadata: { ...rollout.metadata, annotations: { "sts.plus/pause": "true" } } };
  };
  const PARTITIONS: readonly (readonly [string, from: SetGiven, to: SetGiven, KubeObject, RegExp | undefined])[] = [
    ["the release of a pod", {}, HALF, passed, undefined],
    ["a release without a step that has passed", {}, HALF, rolloutOf(statusOf(answered(1, 50))), /no step at 3 has/],
    ["a release in a pause", {}, HALF, paused({}), /no step at 3 has passed/],
    ["a release that was promoted in a pause", {}, HALF, paused({ promoted: true }), undefined],
    ["a release while a pod is not available", { available: 2 }, HALF, passed, /while 2 of 3 pods are available/],
    ["a release of what is not observed", { generation: 6 }, HALF, passed, /its status is older than its spec/],
    ["what holds it before it is observed", { generation: 6, ...HALF }, { generation: 6 }, passed, undefined],
    ["a release without checks", { generation: 6 }, HALF, rolloutOf({}, "phased", { skipCheck: true }), undefined],
    ["a zone of a group", { group: true }, { group: true, ...HALF }, passed, /which is a zone of a group/],
  ];
  for (const [what, from, to, rollout, expected] of PARTITIONS)
    it(`${expected ? "condemns" : "accepts"} ${what}`, () => {
      const [previous, next] = [setOf(from), setOf(to)];
      const { partitions, history, read, violations } = start(previous, []);
      history.note(ROLLOUT_KEY, rollout);
      read();
      partitions.onEvent({ type: "MODIFIED", resource: "statefulsets.apps", object: next, previous }, RECONCILER);
      assert.match(violations.join("; "), expected ?? /^$/);
    });

  /** Writes of a reconciler in turn, beside these pods and maybe a budget of them; the PhasedRollout is as it is. */
  function writes(
    sets: readonly KubeObject[],
    {
      rollout = passed,
      pods = [],
      budget = false,
    }: { rollout?: KubeObject; pods?: readonly KubeObject[]; budget?: boolean } = {},
  ): string {
    const [first = setOf()] = sets;
    const { partitions, history, read, violations } = start(first, pods);
    history.note(ROLLOUT_KEY, rollout);
    if (budget) history.note(BUDGET_KEY, object(PHASED, {}));
    read();
    for (const [i, next] of sets.slice(1).entries())
      partitions.onEvent(
        { type: "MODIFIED", resource: "statefulsets.apps", object: next, previous: sets[i] ?? next },
        RECONCILER,
      );
    return violations.join("; ");
  }
  const claimed = (partition: number, annotations: object): KubeObject => {
    const set = setOf({ partition });
    return { ...set, metadata: { ...set.metadata, annotations: annotations as Record<string, string> } };
  };
  const [CLAIM, ORIGINAL] = ["sts.plus/phasedRollout", "sts.plus/original-partition"];
  const ready = { conditions: [{ type: "Ready", status: "True" }] };
  const added = [...MIXED, podOf(3, REVISION)];
  const step = (partition: number, minute = 59): KubeObject =>
    rolloutOf(statusOf({ ...answered(2, 50), partition, lastCheckTime: `2026-01-01T00:${minute}:30Z` }));

  for (const [what, violations, expected] of [
    ["a release that a budget denies", writes([setOf(), setOf(HALF)], { pods: OLD, budget: true }), /does not let go/],
    ["a release of what is updated, under a budget", writes([setOf(), setOf(HALF)], { pods: NEW, budget: true }), /^$/],
    ["a release by an old success", writes([setOf(), setOf(HALF)], { rollout: step(3, 50) }), /that are old/],
    ["a release by a new one", writes([setOf(), setOf(HALF)], { rollout: step(3) }), /^$/],
    [
      "a release beside a pod that was added",
      writes([setOf(), setOf(HALF), setOf({ ...HALF, replicas: 4 }), setOf({ partition: 1, replicas: 4 })], {
        rollout: step(2),
        pods: added,
      }),
      /db-3, which was added, has had no step/,
    ],
    [
      "a release beside a pod that was there",
      writes([setOf({ replicas: 4 }), setOf({ ...HALF, replicas: 4 })], { rollout: step(4), pods: added }),
      /^$/,
    ],
    [
      "a claim that takes the guard for the partition from before",
      writes([claimed(HELD, {}), claimed(HELD, { [CLAIM]: PHASED, [ORIGINAL]: String(HELD) })], {
        rollout: rolloutOf(statusOf(undefined, ready)),
      }),
      /takes the partition 2147483647/,
    ],
    [
      "a claim after another one",
      writes([claimed(2, { [CLAIM]: "gone" }), claimed(2, { [CLAIM]: PHASED, [ORIGINAL]: "2" })]),
      /takes the partition 2, which gone has set/,
    ],
    [
      "a first claim",
      writes([claimed(2, {}), claimed(2, { [CLAIM]: PHASED, [ORIGINAL]: "2" })], { rollout: rolloutOf({}) }),
      /^$/,
    ],
    [
      "a release to another partition",
      writes([claimed(HELD, { [CLAIM]: PHASED, [ORIGINAL]: "2" }), claimed(0, {})]),
      /gives db back with partition 0 instead of 2/,
    ],
    ["a release to its own", writes([claimed(HELD, { [CLAIM]: PHASED, [ORIGINAL]: "2" }), claimed(2, {})]), /^$/],
  ] as const)
    it(`judges ${what}`, () => assert.match(violations, expected));

  for (const [what, owners, expected] of [
    ["that another one manages", [PHASED], /takes db-rival up/],
    ["whose owner is gone", [], /^$/],
  ] as const)
    it(`judges a PhasedRollout that takes up a StatefulSet ${what}`, () => {
      const { partitions, history, read, violations } = start(setOf(), []);
      for (const name of owners) history.note(ROLLOUT_KEY, object(name, {}));
      read();
      const [previous, next] = [object("db-rival", {}), object("db-rival", {}, { finalizers: ["sts.plus/finalizer"] })];
      partitions.onEvent({ type: "MODIFIED", resource: PHASED_ROLLOUTS, object: next, previous }, RECONCILER);
      assert.match(violations.join("; "), expected);
    });

  const taken = (set: KubeObject, pods: readonly KubeObject[]): string => {
    const { partitions, read, violations } = start(set, pods);
    read();
    const previous = pods.at(-1) ?? podOf(0, REVISION);
    const metadata = { ...previous.metadata, deletionTimestamp: "2026-01-01T01:00:00Z" };
    partitions.onEvent({ type: "MODIFIED", resource: "pods", object: { ...previous, metadata }, previous }, RECONCILER);
    return violations.join("; ");
  };
  for (const [what, violations, expected] of [
    ["that would come back as it is", taken(setOf({ current: REVISION }), NEW), /will come back as it is/],
    ["that comes back at the current revision", taken(setOf(), MIXED), /^$/],
    [
      "that serves while another one does not",
      taken(setOf(), [podOf(0, "old", { ready: false }), ...MIXED.slice(1)]),
      /db-2, which serves, is taken by reconciler-1 while db-0 does not/,
    ],
  ] as const)
    it(`judges a pod ${what}`, () => assert.match(violations, expected));

  for (const [what, set, isBack, pods, expected] of [
    [
      "a pod that does not serve",
      { current: REVISION, ordered: false },
      false,
      [podOf(0, "old", { ready: false })],
      /leaves db-0 as it is/,
    ],
    ["a pod of a template that still rolls", { ordered: false }, false, [podOf(0, "old", { ready: false })], /^$/],
    ["several pods that are released", { current: REVISION, partition: 0 }, true, OLD, /leaves several pods/],
    ["one pod that is released", { current: REVISION, partition: 2 }, true, OLD, /^$/],
  ] as const)
    it(`judges who leaves ${what}`, () => {
      const { partitions, history, read, violations } = start(setOf(set), pods);
      history.note(ROLLOUT_KEY, rolloutOf(statusOf(undefined, isBack ? BACK : {})));
      partitions.onEvent({ type: "MODIFIED", resource: "nodes", object: object("node", {}) }, undefined);
      for (let i = 0; i < 6; i++) read();
      partitions.onRead(RECONCILER);
      assert.match(violations.join("; "), expected);
    });

  for (const [what, version, listedAt, expected] of [
    ["writes that others undo", (): string => "7", (): number => 0, /^reconciler-1 writes db again and again/],
    ["writes that take effect", String, (): number => 0, /^$/],
    ["one such write in each tick", (): string => "7", Number, /^$/],
  ] as const)
    it(`judges ${what}`, () => {
      const { partitions, history, violations } = start(setOf(), []);
      for (let i = 0; i < 6; i++) {
        const { metadata, ...set } = setOf();
        history.note(PHASED, { ...set, metadata: { ...metadata, resourceVersion: version(i) } });
        partitions.onPatched(RECONCILER, listedAt(i));
      }
      assert.match(violations.join("; "), expected);
    });

  const back = setOf({ current: REVISION });
  for (const [what, created, expected] of [
    ["a pod that is older than its StatefulSet", "2026-01-01T00:20:00Z", /db-0 is taken by reconciler-1, and is older/],
    ["a pod of its StatefulSet", "2026-01-01T00:40:00Z", /^$/],
  ] as const)
    it(`judges ${what}, which goes back`, () => {
      const { partitions, read, violations } = start(back, []);
      read();
      const previous = podOf(0, "old", { created, ready: false });
      const metadata = { ...previous.metadata, deletionTimestamp: "2026-01-01T01:00:00Z" };
      partitions.onEvent(
        { type: "MODIFIED", resource: "pods", object: { ...previous, metadata }, previous },
        RECONCILER,
      );
      assert.match(violations.join("; "), expected);
    });

  const REVIEWS: readonly (readonly [string, old: SetGiven, now: SetGiven, patched: number | undefined, RegExp])[] = [
    [
      "a template with the partition of before",
      { partition: 3 },
      { partition: 3, image: 2 },
      undefined,
      /3 instead of/,
    ],
    ["a template that is held", { partition: 3 }, { partition: 3, image: 2 }, HELD, /^$/],
    ["the way back from OnDelete", { type: "OnDelete" }, { partition: 0 }, undefined, /partition 0 instead of/],
    ["a lower partition", { partition: 2 }, { partition: 1 }, undefined, /partition 1 instead of 2/],
    ["more replicas", { partition: 2 }, { partition: 2, replicas: 4 }, undefined, /partition 2 instead of/],
    ["other fields", { partition: 2 }, { partition: 2 }, undefined, /^$/],
    ["other ordinals", { partition: 2 }, { partition: 2, start: 1 }, undefined, /2 instead of 2147483647/],
    ["a manifest without the claim", { partition: 2 }, { partition: 0, claim: false }, 2, /takes the claim of db away/],
    ["a removed claim", { partition: 2 }, { partition: 2, claim: false }, undefined, /^$/],
  ];
  for (const [what, old, now, patched, expected] of REVIEWS)
    it(`judges an answer about ${what}`, () => {
      const { partitions, violations } = start(back, []);
      const patch = patched === undefined ? "" : JSON.stringify([{ op: "add", path: "/partition", value: patched }]);
      partitions.onReview({
        path: "/admission/raise-partition",
        sent: JSON.stringify({ request: { operation: "UPDATE", object: setOf(now), oldObject: setOf(old) } }),
        status: 200,
        answer: JSON.stringify({ response: { allowed: true, patch: Buffer.from(patch).toString("base64") } }),
        lateMs: -1,
      });
      assert.match(violations.join("; "), expected);
    });
});
