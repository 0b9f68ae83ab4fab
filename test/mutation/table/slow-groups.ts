/** Ticks that do not wait for slow groups, and what bounds the cost of large ones. */
import type { Mutation } from "../mutation.ts";

const STEPS = { file: "reconciler/run/steps.ts", tests: ["test/reconciler/run/steps.test.ts"] };
const TICK = { file: "reconciler/run/tick.ts", tests: ["test/reconciler/run/slow-groups.test.ts"] };
const TURNS = { file: "reconciler/run/group-turns.ts", tests: ["test/reconciler/run/group-turns.test.ts"] };
const RESYNC = { file: "reconciler/run/resync.ts", tests: ["test/reconciler/run/resync.test.ts"] };
const RESYNC_PODS = { file: "reconciler/run/resync-pods.ts", tests: ["test/reconciler/run/resync-pods.test.ts"] };
const ZONES = { tests: ["test/reconciler/scaling/act/many-zones.test.ts"] };
const BUDGETS = { tests: ["test/reconciler/run/many-budgets.test.ts"] };

export const SLOW_GROUP_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a tick does not wait for its slowest group",
    file: "reconciler/run/steps.ts",
    tests: ["test/reconciler/run/slow-groups.test.ts"],
    find: "const SLOW_MS = 1000;",
    replacement: "const SLOW_MS = 1_000_000;",
  },
  {
    breaks: "a group is not stepped twice at once",
    ...STEPS,
    find: "if (running.has(key)) return;",
    replacement: 'if (running.has(key) && key === "") return;',
  },
  {
    breaks: "a group whose step ends while the lists are read is left to the next tick",
    ...TICK,
    find: "memory.order(list.groups, busy)",
    replacement: "memory.order(list.groups, steps.underWay())",
  },
  {
    breaks: "a namespace with many slow groups leaves room for the groups of others",
    ...STEPS,
    find: "&& own.length < MAX_SLOW_OF_NAMESPACE",
    replacement: "&& own.length < MAX_SLOW",
  },
  {
    breaks: "slow steps of all namespaces are bounded",
    ...STEPS,
    find: "slow.length < MAX_SLOW &&",
    replacement: "slow.length < 1000 * MAX_SLOW &&",
  },
  {
    breaks: "a run waits for its slow steps before it gives the Lease back",
    file: "reconciler/run/session.ts",
    tests: ["test/reconciler/run/slow-groups.test.ts"],
    find: "  await steps.idle();\n",
    replacement: "",
  },
  {
    breaks: "nothing is written once the Lease is given back",
    file: "infra/kubernetes/lease.ts",
    tests: ["test/infra/lease-bounds.test.ts"],
    find: "if (ended.signal.aborted || deadlineMs <= 0)",
    replacement: "if (deadlineMs <= 0)",
  },
  {
    breaks: "a downscale is not concluded while a step of its group is under way",
    file: "reconciler/downscale/act/conclude-downscales.ts",
    tests: ["test/reconciler/downscale/act/left-out.test.ts"],
    find: "if (isLeftOut(ref)) return",
    replacement: 'if (isLeftOut(ref) && ref.name === "") return',
  },
  {
    breaks: "a status from zones of an earlier tick does not claim to be newer than a change since",
    file: "reconciler/group-status/act/known-groups.ts",
    tests: ["test/reconciler/group-status/act/generations.test.ts"],
    find: "if (!busy.has(key)) entry.confirmed",
    replacement: "if (entries.has(key)) entry.confirmed",
  },
  {
    breaks: "every group is begun once before any is begun twice",
    ...TURNS,
    find: "annotations.set(LAST_STARTED, place);",
    replacement: 'annotations.set(LAST_STARTED, "");',
  },
  {
    breaks: "a namespace that had no room goes on with the group that was passed",
    ...TURNS,
    find: "lastOfFull.set(namespace, previous);",
    replacement: "lastOfFull.set(namespace, key);",
  },
  {
    breaks: "what the Lease remembers of full namespaces has a bound",
    ...TURNS,
    find: "lastOfFull.size > MAX_FULL &&",
    replacement: "lastOfFull.size < 0 &&",
  },
  {
    breaks: "a group that was not begun does not count as resynced",
    ...RESYNC,
    find: "if (!owed.has(sector)) through",
    replacement: "if (!owed.has(sector) || sector > 0) through",
  },
  {
    breaks: "a group acts on no pods but those of a list of its own",
    file: "reconciler/run/step-group.ts",
    tests: ["test/reconciler/run/resync-pods.test.ts"],
    find: "return shared && !showsWork ? shared :",
    replacement: "return shared ? shared :",
  },
  {
    breaks: "a list of pods that fails is replaced by a list a group",
    ...RESYNC_PODS,
    find: "readBatch(batch.groups, source).catch(() => new Map())",
    replacement: "readBatch(batch.groups, source)",
  },
  {
    breaks: "what is due for a resync is spread over ticks",
    ...RESYNC_PODS,
    find: "left -= countAll(chosen);",
    replacement: "",
  },
  {
    breaks: "groups that cannot be begun take no resync of others",
    ...RESYNC_PODS,
    find: "?? openBatch(key);",
    replacement: '?? openBatch(queue.find((one) => !batches.has(one.key))?.key ?? "");',
  },
  {
    breaks: "a StatefulSet is given no pod that its selector does not match",
    file: "reconciler/snapshot/shared-lists.ts",
    tests: ["test/reconciler/snapshot/shared-lists.test.ts"],
    find: "return own.every(([key, value]) => labels[key] === value) ? zone : undefined;",
    replacement: "return own.length > 99 ? undefined : zone;",
  },
  {
    breaks: "a selector that StatefulSets share selects all that theirs do",
    file: "reconciler/snapshot/shared-lists.ts",
    tests: ["test/reconciler/snapshot/shared-lists.test.ts"],
    find: "return labels ? Object.keys(labels).toSorted().join()",
    replacement: 'return labels ? Object.keys(labels)[0] ?? ""',
  },
  {
    breaks: "a group that changes during its slow step is looked at again once that ends",
    file: "reconciler/run/session.ts",
    tests: ["test/reconciler/run/slow-groups.test.ts"],
    find: "needsTick(late) || turns.isAwaited(key)",
    replacement: "needsTick(late)",
  },
  {
    breaks: "zones that wait share one read of their group",
    file: "reconciler/scaling/act/why-not-shrink.ts",
    ...ZONES,
    find: 'if (typeof refused === "object") return refused;',
    replacement: 'if (typeof refused === "object" && zone.name === "") return refused;',
  },
  {
    breaks: "a zone shrinks only by a read of its own",
    file: "reconciler/scaling/act/why-not-shrink.ts",
    ...ZONES,
    find: 'if (typeof refused === "object") return refused;',
    replacement: 'if (lastRead.facts && refused !== "outdated") return refused;',
  },
  {
    breaks: "a group has few lists of pods in flight",
    file: "reconciler/snapshot/gather.ts",
    ...ZONES,
    find: "const LISTS_AT_ONCE = 8;",
    replacement: "const LISTS_AT_ONCE = 800;",
  },
  {
    breaks: "all groups together have few lists in flight",
    file: "infra/kubernetes/limit-lists.ts",
    ...ZONES,
    find: "createSlots(atOnce)",
    replacement: "createSlots(1000 * atOnce)",
  },
  {
    breaks: "a list of budgets compiles no pattern",
    file: "reconciler/budget/act/gather-budget.ts",
    ...BUDGETS,
    find: 'let content: ListedBudget["content"] | undefined;',
    replacement:
      'let content: ListedBudget["content"] | undefined = parseBudget({ kind: BUDGET_KIND, ...object }, compile);',
  },
  {
    breaks: "the observer of budgets lets others have the process",
    file: "reconciler/budget/act/observe-budgets.ts",
    ...BUDGETS,
    find: "const MAX_AT_ONCE = 5;",
    replacement: "const MAX_AT_ONCE = 5000;",
  },
  {
    breaks: "the writer of budgets' statuses lets others have the process",
    file: "reconciler/group-status/act/budget-statuses.ts",
    ...BUDGETS,
    find: "await setImmediate();",
    replacement: "",
  },
  {
    breaks: "a pattern is compiled only if it is short, with what it repeats",
    file: "reconciler/budget/partition.ts",
    tests: ["test/reconciler/budget/partition.test.ts"],
    find: "repeatedLength(pattern) > MAX_REPEATED_LENGTH",
    replacement: "repeatedLength(pattern) > 1000 * MAX_REPEATED_LENGTH",
  },
  {
    breaks: "no pod of a group with too many zones is evicted",
    file: "reconciler/budget/decide-eviction.ts",
    tests: ["test/reconciler/budget/owner.test.ts"],
    find: "  fewEnoughZones,\n",
    replacement: "",
  },
  {
    breaks: "no zone of a group with too many zones is scaled down under a budget",
    file: "reconciler/budget/decide-downscale.ts",
    tests: ["test/reconciler/budget/decide-downscale.test.ts"],
    find: "if (tooMany !== undefined) return",
    replacement: "if (tooMany === uid) return",
  },
  {
    breaks: "no zone of a group with too many zones is prepared for a downscale",
    file: "functions/downscale/other-zones.ts",
    tests: ["test/functions/downscale/other-zones.test.ts"],
    find: "if (tooMany !== undefined) return",
    replacement: "if (tooMany === group.join()) return",
  },
  {
    breaks: "a group with too many zones is not rolled out",
    file: "reconciler/model/too-many-zones.ts",
    tests: ["test/reconciler/run/too-many-zones.test.ts"],
    find: "return count > MAX_ZONES ?",
    replacement: "return count > 10 * MAX_ZONES ?",
  },
];
