/** Phased rollouts: what keeps pods below the partition. */
import type { Mutation } from "../mutation.ts";

const DECIDED = ["test/reconciler/phased/decide.test.ts", "test/reconciler/phased/properties.test.ts"];
const PARTITION = { file: "reconciler/phased/partition.ts", tests: DECIDED };
const STEP = { file: "reconciler/phased/decide-step.ts", tests: DECIDED };
const MANAGE = { file: "reconciler/phased/manage.ts", tests: DECIDED };
const TAKEN = { file: "reconciler/phasing/take-step.ts", tests: ["test/reconciler/phasing/phased-tick.test.ts"] };

export const PHASED_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a partition of 0 is explained only by a step that has passed",
    ...PARTITION,
    find: "step?.partition === 1 && isPassed(snapshot, step)",
    replacement: "step?.partition === 1",
  },
  {
    breaks: "a partition of 0 that no step explains is raised",
    ...PARTITION,
    find: "target.partition !== 0 || isExplained(snapshot)",
    replacement: "true",
  },
  {
    breaks: "a third template raises the partition again",
    ...PARTITION,
    find: "if (!isNew || target.partition === target.replicas) return undefined;",
    replacement: "return undefined;",
  },
  {
    breaks: "a revert is not complete while stale pods are left",
    ...PARTITION,
    find: "if (smallest === undefined) return undefined;",
    replacement: "return undefined;",
  },
  {
    breaks: "nothing is decided about a spec that is not observed",
    ...PARTITION,
    find: `if (target.observed && target.status.updateRevision !== "") return undefined;`,
    replacement: "return undefined;",
  },
  {
    breaks: "a pod that is lost after the checks holds the next one",
    ...STEP,
    find: "if (!missing) return undefined;",
    replacement: "return undefined;",
  },
  {
    breaks: "an old success releases no pod",
    ...STEP,
    find: "!isOutdated(snapshot, step)",
    replacement: "true",
  },
  {
    breaks: "a pause keeps pods that were checked before",
    ...STEP,
    find: "if (rollout.paused && !step.promoted) return undefined;",
    replacement: "",
  },
  {
    breaks: "the stored step counts only for the StatefulSet that it is about",
    file: "reconciler/phased/step.ts",
    tests: DECIDED,
    find: "isRolling && targetUID === target.uid && ",
    replacement: "isRolling && ",
  },
  {
    breaks: "a StatefulSet of another PhasedRollout is left alone",
    ...MANAGE,
    find: "owner.name === rollout.name || owner.targetRef !== target.name",
    replacement: "true",
  },
  {
    breaks: "a zone of a rollout group is not managed by a PhasedRollout",
    ...MANAGE,
    find: "if (!target?.isZone) return undefined;",
    replacement: "return undefined;",
  },
  {
    breaks: "the partition of an earlier PhasedRollout is not restored",
    ...TAKEN,
    find: "from === undefined && target.originalPartition === undefined",
    replacement: "true",
  },
  {
    breaks: "a pod is released only if its disruption budget grants it",
    ...TAKEN,
    find: `if (grant?.action === "hold") return grant;`,
    replacement: `if (grant?.action === "hold") await write();`,
  },
];
