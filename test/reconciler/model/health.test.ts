/** The health of a pod, and what each state means. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  describeHealth,
  type HealthState,
  isMoving,
  isOverdue,
  isReady,
  isTerminating,
  neverServed,
  type PodHealth,
  RECOVERY_MS,
  servesNothing,
} from "../../../reconciler/model/health.ts";
import { readPod } from "../../../reconciler/model/pod.ts";

const CREATED = "2026-01-01T00:00:00Z";
const LATER = "2026-01-01T01:00:00Z";

const container = (ready: boolean, state: object) => ({
  name: "c",
  image: "registry/app:2",
  imageID: "",
  restartCount: 0,
  ready,
  state,
});
const RUNS = container(true, { running: {} });
const ENDED = container(true, { terminated: { exitCode: 1 } });
const PROBED = container(false, { running: {} });
const waits = (reason: string) => container(false, { waiting: { reason } });

/** A pod that was never Ready, or was until an hour after its start. */
const status = (containerStatuses: readonly object[], served: boolean, more = {}): object => ({
  phase: "Running",
  startTime: CREATED,
  conditions: [{ type: "Ready", status: "False", lastTransitionTime: served ? LATER : CREATED }],
  containerStatuses,
  ...more,
});

describe("a pod is", () => {
  const TABLE: readonly [HealthState, what: string, status: object, deleted?: string][] = [
    ["ready", "if it runs, and all of its containers are ready", { phase: "Running", containerStatuses: [RUNS] }],
    ["ready", "without containers that are reported", { phase: "Running" }],
    ["working", "if its container has ended, and was ready", { phase: "Running", containerStatuses: [ENDED] }],
    ["working", "if one of its containers is ready, and another is not", status([RUNS, PROBED], true)],
    [
      "working",
      "if one of its containers crashes, and another is ready",
      status([waits("CrashLoopBackOff"), RUNS], true),
    ],
    ["working", "behind a readiness gate that is closed", status([RUNS], true)],
    ["starting", "if it was never Ready", status([PROBED], false)],
    ["starting", "if its container is being created", status([waits("ContainerCreating")], false)],
    ["starting", "before a kubelet has reported on it", {}],
    ["recovering", "if it was Ready", status([PROBED], true)],
    [
      "recovering",
      "if its conditions do not tell whether it was Ready",
      { phase: "Running", startTime: CREATED, containerStatuses: [PROBED] },
    ],
    ["lost", "if its image cannot be pulled", status([waits("ImagePullBackOff")], false)],
    ["lost", "if its container crashes again and again, and it was Ready", status([waits("CrashLoopBackOff")], true)],
    ["lost", "if it has failed", status([], true, { phase: "Failed" })],
    [
      "lost",
      "if no node takes it",
      { conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable" }] },
    ],
    [
      "gone",
      "if it is being deleted, though all of its containers are ready",
      { phase: "Running", containerStatuses: [RUNS] },
      LATER,
    ],
    ["gone", "if it is being deleted, and its container crashes", status([waits("CrashLoopBackOff")], true), LATER],
  ];
  for (const [state, what, podStatus, deletionTimestamp] of TABLE)
    it(`${state} ${what}`, () => {
      const metadata = { creationTimestamp: CREATED, ...(deletionTimestamp !== undefined && { deletionTimestamp }) };
      const pod = readPod({ metadata, status: podStatus });
      assert.deepEqual(
        [pod.health.state, isReady(pod), isTerminating(pod)],
        [state, state === "ready", state === "gone"],
      );
    });
});

describe("what it means that a pod is", () => {
  const SINCE = Date.parse(LATER);
  const of = (state: HealthState, more: Partial<PodHealth> = {}): { readonly health: PodHealth } => ({
    health: { state, since: SINCE, served: true, fault: undefined, missingImage: undefined, ...more },
  });
  const NEVER = { served: false } as const;
  const UNKNOWN = { served: undefined } as const;
  const FAULT = { fault: "ImagePullBackOff", missingImage: "registry/app:2" } as const;

  /** `idle`: it serves nothing at once; `later`: once it is overdue. */
  const TABLE: readonly [
    name: string,
    pod: { readonly health: PodHealth },
    serves: "yes" | "later" | "idle",
    never: boolean,
    moves: boolean,
    words: string,
  ][] = [
    ["ready", of("ready"), "yes", false, false, "ready"],
    ["working", of("working"), "yes", false, false, "not ready"],
    ["working, and was never Ready", of("working", NEVER), "yes", false, true, "not ready"],
    [
      "working, and one of its containers has no image",
      of("working", FAULT),
      "yes",
      false,
      false,
      "ImagePullBackOff registry/app:2",
    ],
    ["starting", of("starting", NEVER), "idle", true, true, "not ready"],
    ["recovering", of("recovering"), "later", false, false, "not ready"],
    ["recovering, if it is unknown whether it was Ready", of("recovering", UNKNOWN), "later", false, true, "not ready"],
    ["lost", of("lost", { fault: "Failed" }), "idle", false, false, "Failed"],
    [
      "lost, and was never Ready",
      of("lost", { ...NEVER, ...FAULT }),
      "idle",
      true,
      true,
      "ImagePullBackOff registry/app:2",
    ],
    ["gone", of("gone"), "later", false, true, "terminating"],
    ["gone, and was never Ready", of("gone", NEVER), "idle", true, true, "terminating"],
  ];
  for (const [name, pod, serves, never, moves, words] of TABLE)
    it(name, () => {
      const [soon, late] = [SINCE + RECOVERY_MS - 1, SINCE + RECOVERY_MS];
      assert.deepEqual([servesNothing(pod, soon), servesNothing(pod, late)], [serves === "idle", serves !== "yes"]);
      assert.deepEqual([isOverdue(pod, soon), isOverdue(pod, late)], [false, pod.health.state !== "ready"]);
      assert.deepEqual([neverServed(pod), isMoving(pod), describeHealth(pod)], [never, moves, words]);
    });
});
