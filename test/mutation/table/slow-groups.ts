/** Ticks that do not wait for slow groups, and what bounds the cost of large ones. */
import type { Mutation } from "../mutation.ts";

const QUEUE = { file: "reconciler/run/queue.ts", tests: ["test/reconciler/run/queue.test.ts"] };
const TICK = { file: "reconciler/run/tick.ts", tests: ["test/reconciler/run/slow-groups.test.ts"] };
const RESYNC = { file: "reconciler/run/tick.ts", tests: ["test/reconciler/run/resync.test.ts"] };
const SESSION = { file: "reconciler/run/session.ts", tests: ["test/reconciler/run/slow-groups.test.ts"] };
const ZONES = { tests: ["test/reconciler/scaling/act/many-zones.test.ts"] };
const BUDGETS = { tests: ["test/reconciler/run/many-budgets.test.ts"] };

export const SLOW_GROUP_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a tick does not wait for its slowest group",
    ...TICK,
    find: "const PATIENCE_MS = 1000;",
    replacement: "const PATIENCE_MS = 1_000_000;",
  },
  {
    breaks: "a group is not stepped twice at once",
    ...QUEUE,
    find: "return this.#busy.has(key);",
    replacement: 'return this.#busy.has(key) && key === "";',
  },
  {
    breaks: "a group whose step ends while the lists are read is left to the next tick",
    ...TICK,
    file: "reconciler/run/queue.ts",
    find: "return this.#busy.has(key);",
    replacement: "return working !== undefined;",
  },
  {
    breaks: "no step begins while a tick reads what it decides by",
    ...QUEUE,
    find: "while (!this.#isPaused && !this.#options.signal.aborted",
    replacement: "while (!this.#options.signal.aborted",
  },
  {
    breaks: "a group that waits for its turn is decided by the newest facts",
    ...QUEUE,
    find: "entry.work = work;",
    replacement: "",
  },
  {
    breaks: "a group that waits keeps its place",
    ...QUEUE,
    find: "lane.waiting.set(key, entry);",
    replacement: "lane.waiting.delete(key); lane.waiting.set(key, entry);",
  },
  {
    breaks: "a group that is gone begins no step",
    ...QUEUE,
    find: "if (!works.has(key)) this.#drop(key);",
    replacement: "if (!works.has(key)) works.get(key);",
  },
  {
    breaks: "a namespace with many slow groups leaves room for the groups of others",
    ...QUEUE,
    find: "lane.waiting.size > 0 && lane.working.size < this.#options.ofNamespace",
    replacement: "lane.waiting.size > 0",
  },
  {
    breaks: "namespaces take turns",
    ...QUEUE,
    find: "this.#ready.delete(lane);",
    replacement: "if (lane.waiting.size === 1) this.#ready.delete(lane);",
  },
  {
    breaks: "steps of all namespaces are bounded",
    ...QUEUE,
    find: "this.#size < this.#options.atOnce",
    replacement: "this.#size < 1000 * this.#options.atOnce",
  },
  {
    breaks: "no step begins once the session is over",
    ...QUEUE,
    find: "&& !this.#options.signal.aborted",
    replacement: "",
  },
  {
    breaks: "a tick is not kept by groups that will never begin",
    ...QUEUE,
    find: "if (this.#options.signal.aborted) this.#release();",
    replacement: "",
  },
  {
    breaks: "a run waits for its slow steps before it gives the Lease back",
    ...SESSION,
    find: "  await steps.queue.idle();\n",
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
    file: "reconciler/group-status/act/group-statuses.ts",
    tests: ["test/reconciler/group-status/act/generations.test.ts"],
    find: "if (!busy.has(key)) known.confirmed",
    replacement: "if (busy) known.confirmed",
  },
  {
    breaks: "a group that waits long for its turn says so",
    ...TICK,
    find: "const TURN_PATIENCE_MS = 30_000;",
    replacement: "const TURN_PATIENCE_MS = 30_000_000;",
  },
  {
    breaks: "runs that are cut off begin elsewhere, and reach every group",
    file: "reconciler/run/tick.ts",
    tests: ["test/reconciler/run/turns.test.ts"],
    find: "Math.floor(now / 60_000)",
    replacement: "Math.floor(now / 60_000_000_000)",
  },
  {
    breaks: "each group is read whole every 5 minutes",
    ...RESYNC,
    find: "return now - sinceMoment > since;",
    replacement: "return now - sinceMoment > since && sinceMoment < 1;",
  },
  {
    breaks: "the first tick of a session makes up for the resyncs since the last one",
    file: "reconciler/run/session.ts",
    tests: RESYNC.tests,
    find: "resyncedAt.get(key) ?? totals.tickedBefore",
    replacement: "resyncedAt.get(key) ?? now",
  },
  {
    breaks: "a group is resynced once a period",
    file: "reconciler/run/session.ts",
    tests: RESYNC.tests,
    find: "if (isDue) resyncedAt.set(key, now);",
    replacement: "",
  },
  {
    breaks: "an error of one step stays its own",
    file: "reconciler/run/tick.ts",
    tests: ["test/reconciler/run/tick-trouble.test.ts"],
    find: "return { acted: false, failed: true };",
    replacement: "throw error;",
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
    ...TICK,
    file: "reconciler/run/queue.ts",
    find: "if (working.isOwed || (this.#isPaused && this.#busy.has(key)))",
    replacement: "if (this.#isPaused && this.#busy.has(key))",
  },
  {
    breaks:
      "a tick follows at once if a step ends between two that was superseded, has failed or has changed the cluster",
    ...SESSION,
    find: "if (needsTick(late)) changes.wake();",
    replacement: "if (needsTick(late)) changes.wait;",
  },
  {
    breaks: "a check of a step that ends between two ticks ends the pause",
    ...SESSION,
    find: "else if (late.dueAt !== undefined)",
    replacement: "else if (late.dueAt === 0)",
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
    file: "reconciler/budget/act/compose.ts",
    ...BUDGETS,
    find: "const MAX_AT_ONCE = 5;",
    replacement: "const MAX_AT_ONCE = 5000;",
  },
  {
    breaks: "the writer of budgets' statuses lets others have the process",
    file: "reconciler/budget/act/budget-statuses.ts",
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
    file: "reconciler/model/refused-group.ts",
    tests: ["test/reconciler/run/too-many-zones.test.ts"],
    find: "return count > MAX_ZONES ?",
    replacement: "return count > 10 * MAX_ZONES ?",
  },
];
