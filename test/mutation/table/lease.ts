/** The reconciler's Lease, fenced writes, and the calls that carry preconditions. */
import type { Mutation } from "../mutation.ts";

const LEASE = { file: "infra/kubernetes/lease.ts", tests: ["test/infra/lease-bounds.test.ts", "test/infra/kubernetes/lease.test.ts"] };
const BATCH = {
  file: "reconciler/updater/delete-pods.ts",
  tests: ["test/reconciler/fenced-writes.test.ts", "test/reconciler/updater/delete-pods.test.ts"],
};
const STATUS = { file: "reconciler/updater/zone-status.ts", tests: ["test/reconciler/fenced-writes.test.ts"] };
const SCALE = { file: "reconciler/scaler/scale-zone.ts", tests: ["test/reconciler/fenced-writes.test.ts"] };

export const LEASE_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a holder stops writing after two thirds of the Lease's duration",
    ...LEASE,
    find: "durationMs * (2 / 3) - sinceProven()",
    replacement: "durationMs - sinceProven()",
  },
  {
    breaks: "a holder counts its time from before the renewal was sent",
    ...LEASE,
    find: "sinceProven = sinceSent;",
    replacement: "sinceProven = startStopwatch(clock);",
  },
  {
    breaks: "a holder whose monotonic clock stood still counts by the wall clock",
    file: "infra/clock.ts",
    find: "Math.max(now() - wall, monotonic() - steady)",
    replacement: "monotonic() - steady",
    tests: ["test/infra/kubernetes/lease.test.ts"],
  },
  {
    breaks: "nothing is sent once the time is up",
    file: "infra/kubernetes/transport.ts",
    find: "if (leftMs <= 0) return void request",
    replacement: "if (leftMs < -600_000) return void request",
    tests: ["test/infra/frozen.test.ts"],
  },
  {
    breaks: "the API server is told the time that is left right before the first byte",
    file: "infra/kubernetes/transport.ts",
    find: "timeout=${leftMs}ms`",
    replacement: "timeout=34000ms`",
    tests: ["test/infra/frozen.test.ts"],
  },
  {
    breaks: "a challenger waits for the whole duration",
    ...LEASE,
    find: "seen.at >= leaseDurationSeconds * 1000",
    replacement: "seen.at >= leaseDurationSeconds * 500",
  },
  {
    breaks: "a challenger waits anew after each renewal that it sees",
    ...LEASE,
    find: "if (seen?.version !== version) seen =",
    replacement: "if (seen === undefined) seen =",
  },
  {
    breaks: "a Lease is renewed only as the version that the holder last wrote",
    ...LEASE,
    find: "changeLease(options, stored,",
    replacement: "changeLease(options, await getLease(cluster, options, call),",
  },
  {
    breaks: "a holder that finds another name on the Lease has lost it",
    ...LEASE,
    find: "if (current?.spec?.holderIdentity !== identity)",
    replacement: "if (current === undefined)",
  },
  {
    breaks: "a pod is deleted within the bounds of the Lease",
    ...BATCH,
    find: "preconditions: { uid, resourceVersion } }, fence.write());",
    replacement: "preconditions: { uid, resourceVersion } });",
  },
  {
    breaks: "replicas are changed within the bounds of the Lease",
    ...SCALE,
    find: `type: "strategic", body }, fence.write());`,
    replacement: `type: "strategic", body });`,
  },
  {
    breaks: "a status is patched within the bounds of the Lease",
    ...STATUS,
    find: `type: "merge", body }, fence.write());`,
    replacement: `type: "merge", body });`,
  },
  {
    breaks: "a deletion carries the UID of the pod that was judged",
    file: "infra/kubernetes/connect-cluster.ts",
    find: `kind: "DeleteOptions", preconditions });`,
    replacement: `kind: "DeleteOptions", preconditions: { resourceVersion: preconditions.resourceVersion } });`,
    tests: ["test/infra/kubernetes/connect-cluster.test.ts"],
  },
  {
    breaks: "a deletion carries the version of the pod that was judged",
    ...BATCH,
    find: "preconditions: { uid, resourceVersion }",
    replacement: "preconditions: { uid }",
  },
  {
    breaks: "the zone is confirmed unchanged before its first pod is deleted",
    ...BATCH,
    find: "if (isFirst) await patchStatus(decision.zone, actor);",
    replacement: "if (isFirst) await Promise.resolve();",
  },
  {
    breaks: "the group is looked at again before each further pod of a batch",
    ...BATCH,
    find: "if (!isFirst || actor.clock.monotonic()",
    replacement: "if (isFirst && actor.clock.monotonic()",
  },
  {
    breaks: "the group is looked at again before the first pod where it was read long ago",
    ...BATCH,
    find: "actor.gatheredAt > FRESH_MS",
    replacement: "actor.gatheredAt > 1000 * FRESH_MS",
  },
  {
    breaks: "a batch ends once the process is told to stop",
    ...BATCH,
    find: "if (actor.stop.aborted) throw",
    replacement: "if (actor.stop.aborted && judged.length === 0) throw",
  },
  {
    breaks: "a batch ends long before its reservations do",
    ...BATCH,
    find: "if (actor.clock.monotonic() >= endAt) throw",
    replacement: "if (actor.clock.monotonic() >= 1000 * endAt) throw",
  },
  {
    breaks: "a batch ends once a zone is paused",
    file: "reconciler/rollout/continue-batch.ts",
    find: "if (current?.paused) return",
    replacement: `if (current?.paused && current.name === "") return`,
    tests: ["test/reconciler/rollout/continue-batch.test.ts", "test/reconciler/updater/delete-pods.test.ts"],
  },
  {
    breaks: "a batch ends once another zone is unhealthy",
    file: "reconciler/rollout/continue-batch.ts",
    find: "(!other.observed || missingByStatus(other) > 0)",
    replacement: "!other.observed",
    tests: ["test/reconciler/rollout/continue-batch.test.ts", "test/reconciler/updater/delete-pods.test.ts"],
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
    find: "metadata: { resourceVersion, ...(annotations",
    replacement: "metadata: { ...(annotations",
  },
];
