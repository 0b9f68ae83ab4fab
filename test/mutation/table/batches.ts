/** Batches of deletions, and the preconditions of writes. */
import type { Mutation } from "../mutation.ts";

const BATCH = {
  file: "reconciler/rollout/act/take-rollout-step.ts",
  tests: ["test/reconciler/run/fenced-writes.test.ts", "test/reconciler/rollout/act/delete-pods.test.ts"],
};
const STATUS = {
  file: "reconciler/rollout/act/take-rollout-step.ts",
  tests: ["test/reconciler/run/fenced-writes.test.ts"],
};
const SCALE = { file: "reconciler/scaling/act/scale-zone.ts", tests: ["test/reconciler/run/fenced-writes.test.ts"] };

export const BATCH_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a deletion carries the UID of the judged pod",
    file: "infra/kubernetes/connect-cluster.ts",
    find: `kind: "DeleteOptions", preconditions });`,
    replacement: `kind: "DeleteOptions", preconditions: { resourceVersion: preconditions.resourceVersion } });`,
    tests: ["test/infra/kubernetes/connect-cluster-writes.test.ts"],
  },
  {
    breaks: "a deletion carries the version of the judged pod",
    ...BATCH,
    find: "preconditions: { uid, resourceVersion }",
    replacement: "preconditions: { uid }",
  },
  {
    breaks: "the zone is confirmed unchanged before its first pod is deleted",
    ...BATCH,
    find: "if (isFirst) await patchZoneStatus(view.zone, actor);",
    replacement: "if (isFirst) await Promise.resolve();",
  },
  {
    breaks: "the group is read again before each further pod of a batch",
    ...BATCH,
    find: "if (!isFirst || isOutdated(",
    replacement: "if (isFirst && isOutdated(",
  },
  {
    breaks: "the group is read again before the first pod if it was read long ago",
    ...BATCH,
    find: "- gatheredAt > FRESH_MS",
    replacement: "- gatheredAt > 1000 * FRESH_MS",
  },
  {
    breaks: "a batch ends once the process is stopped",
    ...BATCH,
    find: "if (actor.stop.aborted) throw",
    replacement: "if (actor.stop.aborted && view.judged.length === 0) throw",
  },
  {
    breaks: "a batch ends long before its reservations expire",
    ...BATCH,
    find: "if (actor.clock.monotonic() >= endAt) throw",
    replacement: "if (actor.clock.monotonic() >= 1000 * endAt) throw",
  },
  {
    breaks: "a batch ends once a zone is paused",
    file: "reconciler/rollout/continue-batch.ts",
    find: "if (current?.paused) return",
    replacement: `if (current?.paused && current.name === "") return`,
    tests: ["test/reconciler/rollout/continue-batch.test.ts", "test/reconciler/rollout/act/delete-pods.test.ts"],
  },
  {
    breaks: "a batch ends once another zone is unhealthy",
    file: "reconciler/rollout/continue-batch.ts",
    find: "(!other.observed || other.replicas > other.status.ready)",
    replacement: "!other.observed",
    tests: ["test/reconciler/rollout/continue-batch.test.ts", "test/reconciler/rollout/act/delete-pods.test.ts"],
  },
  {
    breaks: "a status is patched only on the version that was read",
    ...STATUS,
    find: "const body = { metadata: { resourceVersion }, ...(status",
    replacement: "const body = { metadata: {}, ...(status",
  },
  {
    breaks: "replicas are changed only on the version that was read",
    ...SCALE,
    find: "metadata: { resourceVersion, annotations }, spec",
    replacement: "metadata: { annotations }, spec",
  },
  {
    breaks: "a conflict at a zone's status ends the step of its group",
    file: STATUS.file,
    tests: ["test/reconciler/rollout/act/zone-status.test.ts"],
    find: "body }, fence.write());",
    replacement: `body }, fence.write()).catch((error: Error & { readonly code?: string }) => {
    if (error.code !== "Conflict") throw error;
  });`,
  },
];
