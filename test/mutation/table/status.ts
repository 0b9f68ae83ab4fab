/** The statuses of groups: what a waiter may believe, and what is counted. */
import type { Mutation } from "../mutation.ts";

const WRITER = { tests: ["test/reconciler/group-status/act/group-statuses.test.ts"] };
const STATUS = { tests: ["test/reconciler/group-status/decide-status.test.ts"] };
const TOTALS = { tests: ["test/reconciler/group-status/totals.test.ts"] };

export const STATUS_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a status states only a generation that was read before the zones",
    ...WRITER,
    file: "reconciler/group-status/act/group-statuses.ts",
    find: "generation: stored ? (stored.uid === confirmed?.uid ? confirmed.generation : 0) : 1,",
    replacement: "generation: stored?.generation ?? 1,",
  },
  {
    breaks: "a generation is confirmed before each tick",
    ...WRITER,
    file: "reconciler/group-status/act/known-groups.ts",
    find: "entry.confirmed = entry.stored && {",
    replacement: "entry.confirmed ??= entry.stored && {",
  },
  {
    breaks: "a RolloutGroup that a user has made is not removed with its zones",
    ...WRITER,
    file: "reconciler/group-status/act/group-statuses.ts",
    find: "if (entry.stored?.isOurs) queue.remove",
    replacement: "if (entry.stored) queue.remove",
  },
  {
    breaks: "a group is ready only if every zone is settled by its latest spec",
    ...STATUS,
    file: "reconciler/group-status/conditions.ts",
    find: "if (zones.length === 0 || !zones.every(isSettledByStatus)) return false;",
    replacement: "if (zones.length === 0) return false;",
  },
  {
    breaks: "an error does not make a group ready that was not",
    ...STATUS,
    file: "reconciler/group-status/conditions.ts",
    find: `return state === "settled" || ((state === "failed" || state === "superseded") && wasReady);`,
    replacement: `return state === "settled" || state === "failed" || state === "superseded";`,
  },
  {
    breaks: "a paused zone that lacks pods keeps its group from counting as settled",
    file: "reconciler/rollout/decide-rollout.ts",
    find: "pausedZones, pausedZonesSettled, ]",
    replacement: "pausedZones, ]",
    tests: ["test/reconciler/rollout/decide-rollout.test.ts"],
  },
  {
    breaks: "a group whose pods are not ready is not listed among those that are",
    ...STATUS,
    file: "reconciler/group-status/conditions.ts",
    find: `if (remaining.length === 0 && !zones.every(isSettledByStatus)) return "Degraded";`,
    replacement: `if (hold === undefined) return "Ready";`,
  },
  {
    breaks: "no end is estimated while a group waits",
    file: "reconciler/group-status/progress.ts",
    find: ` || (phase !== "RollingOut" && phase !== "Scaling")`,
    replacement: "",
    tests: ["test/reconciler/group-status/progress.test.ts"],
  },
  {
    breaks: "a group that comes again does not inherit the progress clock of the earlier one",
    ...WRITER,
    file: "reconciler/group-status/act/group-statuses.ts",
    find: "known.forget(entry);\n  }",
    replacement: "void entry;\n  }",
  },
  {
    breaks: "the status of a budget follows another spec at once",
    file: "reconciler/group-status/act/budget-statuses.ts",
    find: "isNews(budget) || isDue",
    replacement: "isDue",
    tests: ["test/reconciler/group-status/act/budget-statuses.test.ts"],
  },
  {
    breaks: "the status of a budget keeps its reservations",
    file: "reconciler/group-status/act/budget-statuses.ts",
    find: "after = { ...object.status, ...next }",
    replacement: "after: object = next",
    tests: ["test/reconciler/group-status/act/budget-statuses.test.ts"],
  },
  {
    breaks: "the status of a budget whose pods cannot be read is written, without a number",
    file: "reconciler/group-status/act/budget-statuses.ts",
    find: "if (round.stop.aborted) throw error;",
    replacement: "if (error !== undefined) throw error;",
    tests: ["test/reconciler/group-status/act/budget-statuses.test.ts"],
  },
  {
    breaks: "each budget has its turn where lists of pods are slow",
    file: "reconciler/group-status/act/budget-statuses.ts",
    find: "`${round} ${budget.ref.uid}`",
    replacement: "budget.ref.uid",
    tests: ["test/reconciler/group-status/act/budget-statuses.test.ts"],
  },
  {
    breaks: "the pods of one budget are read at a time",
    file: "reconciler/group-status/act/budget-statuses.ts",
    find: "visitEach(counted, { atOnce: 1,",
    replacement: "visitEach(counted, { atOnce: AT_A_TIME,",
    tests: ["test/reconciler/group-status/act/budget-statuses.test.ts"],
  },
  {
    breaks: "no pods are read for evictions that are not counted",
    file: "reconciler/budget/protection.ts",
    find: " || !isCountable(budget, zones.map(expectedPods))) return false;",
    replacement: ") return false;",
    tests: ["test/reconciler/budget/protection.test.ts"],
  },
  {
    breaks: "any number of replicas leaves room for the process",
    file: "reconciler/budget/headroom.ts",
    find: "pods <= (partitionOf ? MAX_PODS_BY_PARTITION : MAX_PODS)",
    replacement: "(!partitionOf || pods <= MAX_PODS_BY_PARTITION)",
    tests: ["test/reconciler/budget/protection.test.ts"],
  },
  {
    breaks: "counted reconciles never go back",
    ...TOTALS,
    file: "reconciler/group-status/totals.ts",
    find: "return reconciles + Math.max(least, now - passes);",
    replacement: "return reconciles + (now - passes);",
  },
  {
    breaks: "a replica that cannot learn if it is still to show the totals does not show them",
    file: "functions/totals/show-once.ts",
    find: "clock.monotonic() - turnAt >= TURN_MS",
    replacement: "clock.monotonic() - turnAt < 0",
    tests: ["test/functions/totals/show-totals.test.ts"],
  },
  {
    breaks: "totals of an earlier process are added to, not replaced",
    file: "infra/metrics/totals.ts",
    find: "        [before, 1],\n",
    replacement: "",
    tests: ["test/infra/metrics/totals.test.ts"],
  },
  {
    breaks: "what a process counted under an earlier Lease is counted once",
    file: "infra/metrics/totals.ts",
    find: "        [first, -1],\n",
    replacement: "",
    tests: ["test/infra/metrics/totals.test.ts"],
  },
];
