import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { judgeTicking, type TickingFacts } from "../../../reconciler/report/ticking.ts";

const NOW = Date.parse("2026-01-01T12:00:00Z");
const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString();
const installation = { namespace: "cache", lease: "zonewise-reconciler", cronJob: "zonewise-reconciler" };

/** The run `zonewise-reconciler-1-abcde` ticked and was renewed so many seconds ago. */
const held = (ticked: number | undefined, isLive = true, holder = "zonewise-reconciler-1-abcde_1") => ({
  holder: isLive ? holder : "",
  heldSince: ago(400),
  isLive,
  lastTick: ticked === undefined ? undefined : ago(ticked),
});
const cronJob = { suspended: false, createdAt: ago(86_400), lastJobAt: ago(20) };
const suspended = { ...cronJob, suspended: true };
/** Its last Job was created long before the last tick. */
const suspendedLongAgo = { ...suspended, lastJobAt: ago(600) };
const job = (name: string, state: "active" | "succeeded" | "failed", seconds: number) => ({
  name,
  createdAt: ago(seconds),
  state,
  message: state === "failed" ? "BackoffLimitExceeded: Job has reached the specified backoff limit" : "",
});
const pod = (job: string, traits: { waiting?: string; failure?: string } = {}) => ({
  name: `${job}-abcde`,
  job,
  waiting: undefined,
  failure: undefined,
  ...traits,
});

const factsOf = (traits: Partial<TickingFacts>): TickingFacts => ({
  installation,
  served: "cache",
  lease: held(1),
  cronJob,
  jobs: [],
  pods: [],
  unread: [],
  leaseUnread: undefined,
  places: ["cache"],
  original: false,
  now: NOW,
  ...traits,
});

describe("the reconciler ticks", () => {
  const CASES: readonly (readonly [string, Partial<TickingFacts>])[] = [
    ["if the last tick is recent", {}],
    ["if a tick takes long, while its process renews the Lease", { lease: held(300) }],
    ["if nobody holds the Lease for a moment", { lease: held(240, false) }],
    ["if the CronJob is suspended and a run by hand ticks", { cronJob: suspendedLongAgo }],
    ["if the CronJob is suspended and events let it tick", { lease: held(240, false), cronJob: suspendedLongAgo }],
    ["without a CronJob, if events let it tick", { cronJob: undefined, lease: held(60, false) }],
  ];
  for (const [what, traits] of CASES) it(what, () => assert.equal(judgeTicking(factsOf(traits)), undefined));
});

describe("the reconciler does not tick", () => {
  const CASES: readonly (readonly [string, Partial<TickingFacts>, RegExp])[] = [
    [
      "Suspended",
      { lease: held(241, false), cronJob: suspended },
      /^the reconciler has not run since 2026-01-01T11:55:59.000Z \(4m1s ago\): CronJob cache\/zonewise-reconciler is suspended$/,
    ],
    [
      "Suspended",
      { lease: held(15, false), cronJob: suspended },
      /^the reconciler last ran 15s ago: CronJob cache\/zonewise-reconciler is suspended$/,
    ],
    [
      "Suspended",
      { lease: held(1), cronJob: suspended },
      /^the reconciler last ran 1s ago: CronJob .* is suspended: the current run ends within a minute, and no other follows$/,
    ],
    [
      "NotInstalled",
      { lease: undefined, cronJob: undefined },
      /^no run of the reconciler is recorded: no reconciler serves namespace cache: /,
    ],
    [
      "LeaseHeld",
      {
        lease: held(301, true, "stranger_1"),
        jobs: [job("r-2", "failed", 20)],
        pods: [pod("r-2", { failure: "exit code 1" })],
      },
      /Lease cache\/zonewise-reconciler is held by stranger_1 since 2026-01-01T11:53:20.000Z/,
    ],
    [
      "LeaseHeld",
      { lease: held(301), jobs: [job("zonewise-reconciler-1", "active", 20)], pods: [pod("zonewise-reconciler-1")] },
      /is held by zonewise-reconciler-1-abcde_1/,
    ],
    [
      "PodNotStarting",
      {
        lease: held(241, false),
        jobs: [job("r-2", "active", 20)],
        pods: [pod("r-2", { waiting: "ImagePullBackOff: no such image" })],
      },
      /pod r-2-abcde of Job r-2 does not start: ImagePullBackOff: no such image$/,
    ],
    [
      "JobFailing",
      {
        lease: held(241, false),
        jobs: [job("r-1", "succeeded", 90), job("r-2", "failed", 20)],
        pods: [pod("r-2", { failure: "exit code 2, LOG_LEVEL is wrong" })],
      },
      /Job r-2 has failed: exit code 2, LOG_LEVEL is wrong$/,
    ],
    [
      "JobFailing",
      { lease: held(241, false), jobs: [job("r-2", "failed", 20)] },
      /Job r-2 has failed: BackoffLimitExceeded: /,
    ],
    ["NoPod", { lease: held(241, false), jobs: [job("r-2", "active", 61)] }, /Job r-2 has no pod: /],
    [
      "NoJob",
      { lease: held(241, false), cronJob: { ...cronJob, lastJobAt: ago(241) } },
      /has created no Job since 2026-01-01T11:55:59.*: kube-controller-manager may not be running\. If it was resumed just now, the next run starts within a minute$/,
    ],
    [
      "NotExplained",
      { lease: held(241, false), jobs: [job("r-1", "succeeded", 90)] },
      /the Lease and the Jobs show no reason$/,
    ],
    [
      "NotExplained",
      { lease: held(241, false), cronJob: undefined, unread: ["CronJob cache/zonewise-reconciler may not be read"] },
      /the cause is unknown: CronJob cache\/zonewise-reconciler may not be read$/,
    ],
    [
      "NotKnown",
      { lease: undefined, leaseUnread: "Lease cache/zonewise-reconciler may not be read" },
      /^it is unknown whether the reconciler runs: Lease/,
    ],
    [
      "NotKnown",
      { lease: undefined, cronJob: undefined, traces: "a reconciler has written the status of RolloutGroup cache/a" },
      /there is no Lease zonewise-reconciler in cache, but a reconciler has written the status of RolloutGroup cache\/a$/,
    ],
    [
      "NotKnown",
      { lease: undefined, cronJob: undefined, unread: ["CronJob cache/zonewise-reconciler may not be read"] },
      /there is no Lease zonewise-reconciler in cache, but CronJob cache\/zonewise-reconciler may not be read$/,
    ],
    [
      "NotYet",
      { lease: undefined, cronJob: { ...cronJob, createdAt: ago(240) } },
      /^the reconciler has not run yet: CronJob cache\/zonewise-reconciler was created 4m ago$/,
    ],
    [
      "NotYet",
      {
        lease: undefined,
        cronJob: { ...cronJob, createdAt: ago(90) },
        jobs: [job("r-1", "active", 80)],
        pods: [pod("r-1", { waiting: "ErrImagePull" })],
      },
      /was created 1m30s ago; pod r-1-abcde of Job r-1 does not start: ErrImagePull$/,
    ],
    [
      "NotYet",
      { lease: { ...held(undefined), heldSince: ago(240) } },
      /^the reconciler has not run yet: zonewise-reconciler-1-abcde_1 took the Lease 4m ago$/,
    ],
    [
      "LeaseHeld",
      { lease: { ...held(undefined), heldSince: ago(241) } },
      /^no run of the reconciler is recorded: Lease /,
    ],
    [
      "JobFailing",
      {
        lease: { ...held(undefined, true, "r-2-abcde_1"), heldSince: ago(5) },
        jobs: [job("r-1", "failed", 70)],
        pods: [pod("r-2")],
      },
      /Job r-1 has failed/,
    ],
    ["NotExplained", { lease: undefined, cronJob: { ...cronJob, createdAt: ago(241) } }, /show no reason$/],
  ];
  for (const [original, why, fix] of [
    [false, / is suspended$/, /^kubectl -n cache patch cronjob zonewise-reconciler -p /],
    [
      true,
      / is suspended, and rollout-operator \(Deployment cache\/rollout-operator\) serves the namespace/,
      /^follow docs/,
    ],
    [undefined, / is suspended$/, /^unless rollout-operator serves the namespace .*:\nkubectl -n cache patch cronjob /],
  ] as const)
    it(`proposes to resume the CronJob unless the original serves the namespace: ${original}`, () => {
      const found = judgeTicking(factsOf({ lease: held(241, false), cronJob: suspended, original }));
      assert.match(found?.message ?? "", why);
      assert.match(found?.remedy ?? "", fix);
    });

  it("puts no text of a Lease into a command that is no pod's name", () => {
    const facts = { lease: held(301, true, "$(reboot)_1"), jobs: [job("r-2", "failed", 20)] };
    const remedy = judgeTicking(factsOf(facts))?.remedy ?? "";
    assert.equal(remedy, "kubectl -n cache get lease zonewise-reconciler -o yaml");
  });

  for (const [reason, traits, message] of CASES)
    it(`${reason}: ${message.source}`, () => {
      const found = judgeTicking(factsOf(traits));
      assert.equal(found?.reason, reason, found?.message);
      assert.match(found?.message ?? "", message);
      assert.equal(found?.state, ["NotKnown", "NotYet"].includes(reason) ? "unknown" : "stopped");
      assert.match(found?.remedy ?? "", /^(unless .*:\n)?kubectl -n cache |^see what|^install it: docs\//);
    });
});
