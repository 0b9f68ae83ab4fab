/** The reconciler's Lease, and the writes that it fences. */
import type { Mutation } from "../mutation.ts";

const LEASE = {
  file: "infra/kubernetes/lease.ts",
  tests: ["test/infra/lease-bounds.test.ts", "test/infra/kubernetes/lease.test.ts"],
};
const SUCCESSION = {
  file: "infra/kubernetes/lease-succession.ts",
  tests: ["test/infra/kubernetes/lease-succession.test.ts", "test/infra/kubernetes/two-writers.test.ts"],
};
const BATCH = {
  file: "reconciler/rollout/act/take-rollout-step.ts",
  tests: ["test/reconciler/run/fenced-writes.test.ts", "test/reconciler/rollout/act/delete-pods.test.ts"],
};
const STATUS = {
  file: "reconciler/rollout/act/take-rollout-step.ts",
  tests: ["test/reconciler/run/fenced-writes.test.ts"],
};
const SCALE = { file: "reconciler/scaling/act/scale-zone.ts", tests: ["test/reconciler/run/fenced-writes.test.ts"] };

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
    find: "Math.max(wall() - byWall, monotonic() - bySteady)",
    replacement: "monotonic() - bySteady",
    tests: ["test/infra/kubernetes/lease.test.ts"],
  },
  {
    breaks: "nothing is sent after the deadline",
    file: "infra/kubernetes/transport.ts",
    find: "if (leftMs <= 0) return void request",
    replacement: "if (leftMs < -600_000) return void request",
    tests: ["test/infra/frozen.test.ts"],
  },
  {
    breaks: "the timeout for the API server is computed right before the first byte",
    file: "infra/kubernetes/transport.ts",
    find: "timeout=${leftMs}ms`",
    replacement: "timeout=34000ms`",
    tests: ["test/infra/frozen.test.ts"],
  },
  {
    breaks: "a challenger waits for the whole duration",
    ...SUCCESSION,
    find: "durationMs) - unchangedMs",
    replacement: "durationMs) - 2 * unchangedMs",
  },
  {
    breaks: "a Lease without its duration is waited for one",
    ...SUCCESSION,
    find: "leaseDurationSeconds * 1000 || durationMs",
    replacement: "leaseDurationSeconds * 1000",
  },
  {
    breaks: "a run that handed its Lease over goes on if it is free after all",
    file: "reconciler/run/run.ts",
    find: "if (isOver(input, session)) ended.abort();",
    replacement: 'if (isOver(input, session) || session.end === "handedOver") ended.abort();',
    tests: ["test/reconciler/run/handover.test.ts"],
  },
  {
    breaks: "whoever takes the Lease empties the announcement",
    ...LEASE,
    find: 'await write(identity, { [SUCCESSOR]: "" });',
    replacement: "await write(identity);",
    tests: ["test/infra/kubernetes/handover.test.ts"],
  },
  {
    breaks: "a holder whose clocks both stood still learns it by the first answer of an API server",
    file: "infra/server-clock.ts",
    find: "isContradicted ? machine.now() : now()",
    replacement: "machine.now()",
    tests: ["test/infra/server-clock.test.ts", "test/infra/kubernetes/lease.test.ts"],
  },
  {
    breaks: "a holder does not lose its Lease again and again to API servers whose clocks differ",
    file: "infra/server-clock.ts",
    find: "isContradicted ? machine.now() : now()",
    replacement: "now()",
    tests: ["test/infra/server-clock.test.ts"],
  },
  {
    breaks: "an announcement does not pass for a renewal",
    file: "infra/kubernetes/lease-succession.ts",
    find: `[holderIdentity, acquireTime, renewTime, leaseTransitions].join(" ")`,
    replacement: `found?.metadata?.resourceVersion ?? ""`,
    tests: ["test/infra/kubernetes/lease-succession.test.ts"],
  },
  {
    breaks: "an announcement is written only on the version that was read",
    file: "infra/kubernetes/lease-succession.ts",
    find: "changeLease(options, found, { annotations:",
    replacement:
      "changeLease(options, { ...found, metadata: { annotations: found?.metadata?.annotations ?? {} } }, { annotations:",
    tests: ["test/infra/kubernetes/handover.test.ts"],
  },
  {
    breaks: "a release that an announcement makes conflict is made again",
    ...LEASE,
    find: 'if (remainingMs() > 0) await write("").catch(() => {});\n    }',
    replacement: "}",
    tests: ["test/infra/kubernetes/handover.test.ts"],
  },
  {
    breaks: "a challenger waits again after each renewal that it sees",
    file: "infra/kubernetes/lease-succession.ts",
    tests: LEASE.tests,
    find: "if (seen?.renewal !== renewal) seen =",
    replacement: "if (seen === undefined) seen =",
  },
  {
    breaks: "a Lease is renewed only on the version that the holder last wrote",
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
    breaks: "a write that waits to be sent is not sent once the Lease is given back",
    ...LEASE,
    find: "return { deadlineMs, signal: over };",
    replacement: "return { deadlineMs, signal: lost.signal };",
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
    breaks: "a Lease is given back only once a renewal under way has ended",
    ...LEASE,
    find: "await renewing; if (remainingMs() > 0) await free();",
    replacement: "if (remainingMs() > 0) await free();",
  },
  {
    breaks: "a hanging call to a pod is cut off when the Lease is lost",
    file: "reconciler/run/session.ts",
    tests: ["test/reconciler/run/slow-groups.test.ts"],
    find: "firstOfSignals(stop, held.lost, over.signal)",
    replacement: "firstOfSignals(stop, over.signal)",
  },
];
