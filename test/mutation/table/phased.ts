/** Phased rollouts: what keeps pods below the partition. */
import type { Mutation } from "../mutation.ts";

const DECIDED = [
  "original-cases",
  "manage",
  "partition",
  "rollback",
  "beyond-original",
  "by-hand",
  "other-check",
  "decide-phased",
  "properties",
].map((name) => `test/reconciler/phased/${name}.test.ts`);
const PARTITION = { file: "reconciler/phased/partition.ts", tests: DECIDED };
const BACK = { file: "reconciler/phased/roll-back.ts", tests: DECIDED };
const STEP = { file: "reconciler/phased/decide-step.ts", tests: DECIDED };
const MANAGE = { file: "reconciler/phased/manage.ts", tests: DECIDED };
const ADMITTED = {
  file: "functions/phased/keep-partition.ts",
  tests: ["test/functions/through-api.test.ts", "test/functions/phased/phased-webhooks.test.ts"],
};
const SCALED = ["test/reconciler/phased/scaling.test.ts", "test/reconciler/phased/scale-out.test.ts"];
const WATCHED = { file: "reconciler/run/tick-watch.ts", tests: ["test/reconciler/phased/act/watch.test.ts"] };
const TAKEN = {
  file: "reconciler/phased/act/take-phased-step.ts",
  tests: ["adoption", "budget", "phased-tick"].map((name) => `test/reconciler/phased/act/${name}.test.ts`),
};

export const PHASED_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "after the clock was turned back a step begins again",
    ...STEP,
    find: "if (!isAhead(step, now)) return undefined;",
    replacement: "if (step.partition >= 0 || !isAhead(step, now)) return undefined;",
  },
  {
    breaks: "a lower partition is explained only by a step that has passed",
    ...PARTITION,
    find: "(isPassed(snapshot, step) && skipped",
    replacement: "((isPassed(snapshot, step) || true) && skipped",
  },
  {
    breaks: "a partition of 0 that no step explains is raised",
    ...PARTITION,
    find: "if (!step) return partition > 0;",
    replacement: "if (!step) return partition >= 0;",
  },
  {
    breaks: "a partition lower than the step's is raised",
    ...PARTITION,
    find: "partition >= step.partition || (isPassed",
    replacement: "partition > 0 || (isPassed",
  },
  {
    breaks: "a write of others lowers no partition",
    ...ADMITTED,
    find: "HELD : before.partition;",
    replacement: "HELD : Math.min(0, before.partition);",
  },
  {
    breaks: "another template raises the partition in the same write",
    ...ADMITTED,
    find: "!isDeepStrictEqual(before.template, after.template)",
    replacement: "(isDeepStrictEqual(before.template, after.template) && before.partition < 0)",
  },
  {
    breaks: "more replicas raise the partition in the same write",
    ...ADMITTED,
    find: "return partition > 0 && partition < after.replicas &&",
    replacement: "return partition > 99 && partition < after.replicas &&",
  },
  {
    breaks: "before the first pod is released no scale-out reaches the partition",
    ...PARTITION,
    tests: SCALED,
    find: "target.partition >= target.replicas && target.partition !== HELD",
    replacement: "target.partition > HELD",
  },
  {
    breaks: "pods beyond those that were judged raise the partition",
    file: "reconciler/phased/scale-out.ts",
    tests: SCALED,
    find: "partition >= replicas || replicas <= judged) return undefined;",
    replacement: "partition >= replicas || replicas >= judged) return undefined;",
  },
  {
    breaks: "the judged pods are remembered from step to step",
    file: "reconciler/phased/scale-out.ts",
    tests: SCALED,
    find: "return { partition, replicas: keepsMark ? judged : target.replicas };",
    replacement: "return { partition, replicas: keepsMark ? target.replicas : target.replicas };",
  },
  {
    breaks: "pods that a scale-out added return",
    file: "reconciler/phased/scale-out.ts",
    tests: SCALED,
    find: "if (target.partition !== HELD) return undefined;",
    replacement: "if (target.partition <= HELD) return undefined;",
  },
  {
    breaks: "a pod that a scale-out added stays if it would return at the same revision",
    file: "reconciler/phased/scale-out.ts",
    tests: SCALED,
    find: "if (target.status.currentRevision === target.status.updateRevision) return [];",
    replacement: `if (target.status.currentRevision === "") return [];`,
  },
  {
    breaks: "a ready pod that a scale-out added waits for the others",
    file: "reconciler/phased/scale-out.ts",
    tests: SCALED,
    find: "(findMissing(snapshot, target.replicas) ? undefined : strays.at(-1))",
    replacement: "strays.at(-1)",
  },
  {
    breaks: "a release passes over updated pods only",
    ...PARTITION,
    tests: SCALED,
    find: "skipped.every(([, pod]) => pod.revision === status.updateRevision)",
    replacement: `skipped.every(([, pod]) => pod.revision !== "")`,
  },
  {
    breaks: "the way back from OnDelete raises the partition in the same write",
    ...ADMITTED,
    find: "!before.rolls || before.firstOrdinal",
    replacement: "(!before.rolls && before.partition < 0) || before.firstOrdinal",
  },
  {
    breaks: "other ordinals raise the partition in the same write",
    ...ADMITTED,
    find: "before.firstOrdinal !== after.firstOrdinal ||",
    replacement: "(before.firstOrdinal !== after.firstOrdinal && before.partition < 0) ||",
  },
  {
    breaks: "a replacement by a manifest keeps the claim",
    ...ADMITTED,
    file: "functions/phased/raise-partition.ts",
    find: "...patchClaim(before, now)]",
    replacement: "...patchClaim(before, before)]",
  },
  {
    breaks: "the reconciler names itself to the admission of its writes",
    ...TAKEN,
    tests: ["test/reconciler/phased/act/pinned.test.ts"],
    find: "fieldManager: FIELD_MANAGER }",
    replacement: "fieldManager: FIELD_MANAGER.slice(1) }",
  },
  {
    breaks: "a third template raises the partition again",
    ...PARTITION,
    find: "if (!isNew || target.partition === HELD) return undefined;",
    replacement: "if (!isNew || target.partition <= HELD) return undefined;",
  },
  {
    breaks: "a revert is not complete while stale pods are left",
    ...BACK,
    find: "|| stale.length === 0) return undefined;",
    replacement: "|| stale.length >= 0) return undefined;",
  },
  {
    breaks: "pods of a StatefulSet that was created again around them are no rollback",
    ...BACK,
    find: "rollout.status.targetUID !== target.uid ||",
    replacement: `rollout.status.targetUID === "" ||`,
  },
  {
    breaks: "pods that are older than their StatefulSet are no rollback, whatever its status says by now",
    ...BACK,
    find: "pod.createdAt <= createdAt",
    replacement: "pod.createdAt < '' && createdAt !== ''",
  },
  {
    breaks: "pods that do not serve go back, also beside pods that are older than their StatefulSet",
    ...BACK,
    find: "isCurrent(snapshot) ? unreadyReplaced(snapshot, own) :",
    replacement: "isCurrent(snapshot) && own.length > 99 ? unreadyReplaced(snapshot, own) :",
  },
  {
    breaks: "a StatefulSet that was created again is recorded only once something was decided about it",
    ...PARTITION,
    find: "const isKnown = rollout.status.targetUID === target.uid;",
    replacement: "const isKnown = rollout.status.targetUID !== '';",
  },
  {
    breaks: "nothing is settled while stale pods are left",
    ...BACK,
    find: "&& stalePods(snapshot).length === 0",
    replacement: "&& stalePods(snapshot).length >= 0",
  },
  {
    breaks: "of a reverted template one pod is released at a time",
    ...BACK,
    find: "if (snapshot.target.partition >= highest) return undefined;",
    replacement: "if (snapshot.target.partition >= highest || highest >= 0) return undefined;",
  },
  {
    breaks: "a pod of a reverted template is released only if its disruption budget grants it",
    ...BACK,
    tests: ["test/reconciler/phased/act/budget.test.ts"],
    find: `reason: "RollBack", message: describe(snapshot), pod }`,
    replacement: `reason: "RollBack", message: describe(snapshot), ...(pod.terminating && { pod }) }`,
  },
  {
    breaks: "a partition that something pins is an error",
    ...TAKEN,
    tests: ["test/reconciler/phased/act/pinned.test.ts"],
    find: "sent === undefined || sent === partition ||",
    replacement: "sent === undefined || sent >= 0 || sent === partition ||",
  },
  {
    breaks: "nothing is decided about a spec that is not observed",
    ...PARTITION,
    find: `if (target.observed && target.status.updateRevision !== "") return undefined;`,
    replacement: `if (target.observed || target.status.updateRevision !== "") return undefined;`,
  },
  {
    breaks: "a pod that is lost after the checks holds the next one",
    ...STEP,
    find: "if (!missing) return undefined;",
    replacement: `if (!missing || missing.message !== "") return undefined;`,
  },
  {
    breaks: "an old success releases no pod",
    ...STEP,
    find: "!isOutdated(snapshot, step)",
    replacement: "(!isOutdated(snapshot, step) || step.partition >= 0)",
  },
  {
    breaks: "successes of another query release no pod",
    ...STEP,
    find: "isOfOtherCheck(snapshot, step) ?",
    replacement: "isOfOtherCheck(snapshot, step) && step.partition < 0 ?",
  },
  {
    breaks: "a pause keeps pods that were checked before",
    ...STEP,
    find: "if (rollout.paused && !step.promoted) return undefined;",
    replacement: "if (rollout.paused && !step.promoted && step.partition < 0) return undefined;",
  },
  {
    breaks: "the stored step counts only for the StatefulSet that it is about",
    file: "reconciler/phased/step.ts",
    tests: DECIDED,
    find: "isRolling && targetUID === target.uid && ",
    replacement: `isRolling && targetUID !== "" && `,
  },
  {
    breaks: "a StatefulSet of another PhasedRollout is left alone",
    ...MANAGE,
    find: "owner.name === rollout.name || owner.targetRef !== target.name",
    replacement: `owner.name === rollout.name || owner.targetRef !== ""`,
  },
  {
    breaks: "a zone of a rollout group is not managed by a PhasedRollout",
    ...MANAGE,
    find: "if (!target?.isZone) return undefined;",
    replacement: `if (!target?.isZone || target.name !== "") return undefined;`,
  },
  {
    breaks: "the partition of an earlier PhasedRollout is not restored",
    ...MANAGE,
    tests: TAKEN.tests,
    find: "target.owner === undefined && target.originalPartition === undefined",
    replacement: `target.owner !== "" && target.originalPartition === undefined`,
  },
  {
    breaks: "a StatefulSet that was held before is held again after the release",
    file: "reconciler/phased/target.ts",
    tests: ["test/reconciler/phased/manage.test.ts", "test/reconciler/phased/act/adoption.test.ts"],
    find: "Number(text) <= HELD ?",
    replacement: "Number(text) < HELD ?",
  },
  {
    breaks: "a decision looks at as many places as there are pods, upwards",
    file: "reconciler/phased/target.ts",
    tests: ["test/reconciler/phased/many-replicas.test.ts"],
    find: "index < end; index++) {\n    const pod = pods.get(index);\n    if (!pod || wanted(pod))",
    replacement: "index < end; index++) {\n    const pod = pods.get(index);\n    if (pod && wanted(pod))",
  },
  {
    breaks: "a decision looks at as many places as there are pods, downwards",
    file: "reconciler/phased/target.ts",
    tests: ["test/reconciler/phased/many-replicas.test.ts"],
    find: "index >= 0; index--) {\n    const pod = pods.get(index);\n    if (!pod || wanted(pod))",
    replacement: "index >= 0; index--) {\n    const pod = pods.get(index);\n    if (pod && wanted(pod))",
  },
  {
    breaks: "our own guard is not taken for the partition from before, if somebody removes the claim",
    ...MANAGE,
    find: "return status.targetUID === uid &&",
    replacement: `return status.targetUID === "" &&`,
  },
  {
    breaks: "our own write to a PhasedRollout wakes no tick",
    ...WATCHED,
    find: "if (resource === phasedRollouts) written.add(resourceVersion);",
    replacement: `if (resource === phasedRollouts) written.add("");`,
  },
  {
    breaks: "a StatefulSet that no PhasedRollout manages wakes no tick",
    ...WATCHED,
    find: "matters: ({ namespace, name }) => targets.has(`${namespace}/${name}`) }",
    replacement: "matters: ({ namespace, name }) => targets.size > 0 || targets.has(`${namespace}/${name}`) }",
  },
  {
    breaks: "a pod is released only if its disruption budget grants it",
    ...TAKEN,
    find: `if (grant?.action === "hold") return grant;`,
    replacement: `if (grant?.action === "hold") await write();\n  if (grant?.action === "hold") return grant;`,
  },
];
