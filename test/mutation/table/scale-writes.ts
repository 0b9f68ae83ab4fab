/** Writes of replicas: when they may happen, what is read again before, and what may have taken effect. */
import type { Mutation } from "../mutation.ts";

const MIN_TIME = { file: "reconciler/scaling/min-time.ts", tests: ["test/reconciler/scaling/min-time.test.ts"] };
const SCALE = { file: "reconciler/scaling/act/scale-zone.ts", tests: ["test/reconciler/run/scale-races.test.ts"] };
const LOOK = { file: "reconciler/scaling/act/scale-zone.ts", tests: ["test/reconciler/run/scale-races.test.ts"] };
const LEASE = { file: SCALE.file, tests: ["test/reconciler/scaling/act/scale-zone.test.ts"] };
const ORDERS = { file: SCALE.file, tests: ["test/reconciler/interleavings/shrink.test.ts"] };
const BOUND = { file: "reconciler/downscale/act/downscale-lease.ts", tests: ORDERS.tests };
const ROLLOUT = {
  file: "reconciler/rollout/act/take-rollout-step.ts",
  tests: [
    "test/reconciler/interleavings/rollout-beside-downscale.test.ts",
    "test/reconciler/rollout/act/downscale-lease.test.ts",
  ],
};
const CHANGED = ["test/reconciler/run/changed-writes.test.ts"];

export const SCALE_WRITE_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a scale that is stored with another number ends the tick of its group",
    ...SCALE,
    tests: CHANGED,
    find: "const isPinned = stored === zone.replicas;",
    replacement: "const isPinned = stored !== undefined;",
  },
  {
    breaks: "a downscale that changed nothing leaves no time behind",
    ...SCALE,
    tests: CHANGED,
    find: "if (recordAt !== undefined && !isSmaller)",
    replacement: "if (recordAt !== undefined && !isSmaller && !isPinned)",
  },
  {
    breaks: "a downscale that others make an upscale leaves no time behind",
    ...SCALE,
    tests: CHANGED,
    find: "if (recordAt !== undefined && !isSmaller)",
    replacement: "if (recordAt !== undefined && !isSmaller && isPinned)",
  },
  {
    breaks: "that time is removed also if somebody else writes the zone at that moment",
    ...SCALE,
    tests: CHANGED,
    find: `if (!hasCode(error, "Conflict")) throw error;\n    await retryOnConflict`,
    replacement: `if (error !== undefined) throw error;\n    await retryOnConflict`,
  },
  {
    breaks: "a zone whose replicas something pins is not written again at once",
    ...SCALE,
    tests: CHANGED,
    find: "const PINNED_MS = 30_000;",
    replacement: "const PINNED_MS = 0;",
  },
  {
    breaks: "a list of StatefulSets from before other groups had their turn is read again",
    file: "reconciler/run/tick.ts",
    tests: CHANGED,
    find: "facts = { gatheredAt, gates };",
    replacement: "facts = { get gatheredAt() { return context.clock.monotonic(); }, gates };",
  },
  {
    breaks: "the time between zones must be over, not just reached",
    ...MIN_TIME,
    find: "if (snapshot.now - last.at > ms) return undefined;",
    replacement: "if (snapshot.now - last.at >= ms) return undefined;",
  },
  {
    breaks: "a downscale that cannot be read holds the other zones",
    ...MIN_TIME,
    find: "if (at === undefined) {",
    replacement: 'if (at === undefined) { if (text !== "") continue;',
  },
  {
    breaks: "a zone tracker that cannot be read holds every zone",
    ...MIN_TIME,
    find: "if (!tracked) return hold(",
    replacement: "if (!tracked) return undefined;\n  if (tracked.size < 0) return hold(",
  },
  {
    breaks: "a downscale is recorded with the replicas",
    file: "reconciler/scaling/snapshot.ts",
    find: "const record = replicas < zone.replicas && zones",
    replacement: "const record = replicas < 0 && zones",
    tests: ["test/reconciler/scaling/follower.test.ts", "test/reconciler/scaling/leader.test.ts"],
  },
  {
    breaks: "nothing else is done for a group once a change of replicas may have taken effect",
    ...SCALE,
    find: "if (!isRefused(error)) throw error;",
    replacement: "if (!(error instanceof RolloutError)) throw error;",
  },
  {
    breaks: "a write that failed with a server error may have taken effect",
    file: "infra/errors.ts",
    find: 'ServerError: { retryable: true, effect: "unknown" }',
    replacement: 'ServerError: { retryable: true, effect: "none" }',
    tests: ["test/infra/errors.test.ts", "test/reconciler/scaling/follower.test.ts"],
  },
  {
    breaks: "only an API server that could not ask a webhook is known to have written nothing",
    file: "infra/kubernetes/api-error.ts",
    find: `status.message?.startsWith('Internal error occurred: failed calling webhook "')`,
    replacement: `status.message?.includes('failed calling webhook "')`,
    tests: ["test/infra/cluster-errors.test.ts"],
  },
  {
    breaks: "a zone that has changed since it was read is not scaled down",
    ...LOOK,
    find: "uid === zone.uid && resourceVersion === zone.resourceVersion",
    replacement: 'uid === zone.uid && resourceVersion !== ""',
  },
  {
    breaks: "everything is read again before a zone is scaled down",
    ...SCALE,
    file: "reconciler/scaling/steady.ts",
    find: "return replicas < zone.replicas &&",
    replacement: "return replicas < 0 &&",
  },
  {
    breaks: "a zone is not scaled down while another loses pods",
    file: "reconciler/scaling/steady.ts",
    tests: [
      "test/reconciler/scaling/decide-scaling.test.ts",
      "test/reconciler/run/scale-races.test.ts",
      "test/reconciler/scaling/act/scale-zone.test.ts",
    ],
    find: "? undefined : othersSteady(step, group, times.now);",
    replacement: "? undefined : why;",
  },
  {
    breaks: "no pod is reserved for a downscale that the webhook refuses for outdated pods of another zone",
    file: "reconciler/scaling/steady.ts",
    tests: ["test/reconciler/scaling/steady.test.ts"],
    find: "(isJudged ? whyRefused(other, inGroup) : undefined)",
    replacement: "undefined",
  },
  {
    breaks: "a rollout and a downscale do not wait for each other where a budget keeps the pods that go",
    file: "reconciler/downscale/decide-admission.ts",
    tests: ["test/reconciler/downscale/downscale.test.ts"],
    find: "(updated === ready || shrink.mayBeOutdated)",
    replacement: "updated === ready",
  },
  {
    breaks: "a zone that is up to date does not shrink while others have outdated pods",
    file: "reconciler/downscale/decide-admission.ts",
    tests: ["test/reconciler/downscale/downscale.test.ts"],
    find: "return old.length > 0 && old.every",
    replacement: "return old.every",
  },
  {
    breaks: "no zone waits, for what a webhook refuses, while others may wait for it",
    file: "reconciler/scaling/steady.ts",
    tests: ["test/reconciler/scaling/steady.test.ts"],
    find: "own !== undefined && isHealthy(own)",
    replacement: "own !== undefined",
  },
  {
    breaks: "a zone is not scaled down while an admitted downscale of another may still be stored",
    ...LOOK,
    find: "if (!admitted) return undefined;",
    replacement: "if (!admitted || others.length > 0) return undefined;",
  },
  {
    breaks: "a zone that no webhook judges is scaled down under the downscale Lease of its group",
    ...ORDERS,
    find: "if (isChecked && !zone.scaling.judgedByWebhook) return",
    replacement: "if (isChecked && zone.replicas < 0) return",
  },
  {
    breaks: "the downscale Lease is left to the webhook that judges the write",
    ...ORDERS,
    find: "if (isChecked && !zone.scaling.judgedByWebhook) return",
    replacement: "if (isChecked) return",
  },
  {
    breaks: "everything is read again under the downscale Lease",
    ...ORDERS,
    find: "const why = await whyNotShrink(step, scaler, pending);",
    replacement: "const why = undefined;",
  },
  {
    breaks: "nothing is written once the downscale Lease may have passed to another",
    ...BOUND,
    find: "if (leftMs <= 0) throw",
    replacement: "if (leftMs < -Infinity) throw",
  },
  {
    breaks: "a write under the downscale Lease ends before it may pass to another",
    ...BOUND,
    find: "deadlineMs: Math.min(deadlineMs, leftMs)",
    replacement: "deadlineMs",
  },
  {
    breaks: "the downscale Lease is kept while a write without an answer may take effect",
    ...LEASE,
    find: "if (!wroteNothing(error)) leaveToExpire();",
    replacement: "",
  },
  {
    breaks: "the downscale Lease is released after a write that was refused",
    ...LEASE,
    find: "if (!wroteNothing(error)) leaveToExpire();",
    replacement: "leaveToExpire();",
  },
  {
    breaks: "pods are deleted under the downscale Lease while a webhook may admit a downscale of another zone",
    ...ROLLOUT,
    find: "mayAnotherShrink(batch) ? await",
    replacement: "batch.endAt < 0 ? await",
  },
  {
    breaks: "no pod is deleted while an admitted downscale of another zone may still be stored",
    ...ROLLOUT,
    find: "if (admitted) return waitFor",
    replacement: "if (admitted && others.length < 0) return waitFor",
  },
  {
    breaks: "the downscale Lease is kept while a deletion without an answer may take effect",
    ...ROLLOUT,
    find: "else onUnknown?.();",
    replacement: "",
  },
  {
    breaks: "deletions under the downscale Lease end before it may pass to another",
    ...ROLLOUT,
    find: "{ ...actor, fence }, leaveToExpire",
    replacement: "actor, leaveToExpire",
  },
  {
    breaks: "the reconciler leaves pending downscales in the Lease as they are",
    file: "reconciler/downscale/act/downscale-lease.ts",
    tests: SCALE.tests,
    find: "claim.updatePending?.(found) ?? found;",
    replacement: "claim.updatePending?.(found) ?? {};",
  },
  {
    breaks: "the status of a mirrored workload is left to its controller",
    file: "reconciler/model/scaling.ts",
    tests: ["test/reconciler/model/scaling.test.ts"],
    find: `writeBack: writeBack && group !== "apps"`,
    replacement: "writeBack",
  },
  {
    breaks: "prepare-downscale does not judge a zone that carries no-downscale as well",
    file: "reconciler/model/scaling.ts",
    tests: LEASE.tests,
    find: " && noDownscale?.value !== true",
    replacement: "",
  },
];
