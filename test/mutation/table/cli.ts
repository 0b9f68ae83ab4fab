/** What the CLI says, and what it writes. */
import type { Mutation } from "../mutation.ts";

const STATE = { file: "cli/decide/group-state.ts", tests: ["test/cli/commands/status.test.ts"] };
const ACTIONS = { file: "cli/commands/actions.ts", tests: ["test/cli/commands/actions.test.ts"] };

export const CLI_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "zonewise status takes no ready from before an apply for one after it",
    ...STATE,
    find: "rows.get(name)?.generation === newest",
    replacement: "(rows.get(name)?.generation ?? 0) <= newest",
  },
  {
    breaks: "zonewise changes a zone only as it was read",
    ...ACTIONS,
    find: "metadata: { ...metadata, uid, resourceVersion }",
    replacement: "metadata: { ...metadata, uid }",
  },
  {
    breaks: "zonewise changes nothing in a dry run",
    ...ACTIONS,
    find: 'fieldManager: "zonewise-cli", dryRun,',
    replacement: 'fieldManager: "zonewise-cli",',
  },
  {
    breaks: "zonewise never says that nothing was changed where a write may be stored",
    ...ACTIONS,
    find: "const isSure = wroteNothing(error);",
    replacement: "const isSure = true;",
  },
  {
    breaks: "a plan under a budget does not move its clock by a millisecond a look",
    file: "reconciler/plan/plan-group.ts",
    tests: ["test/reconciler/plan/budget-verdicts.test.ts"],
    find: "content.crossZoneEvictionDelayMs === 0",
    replacement: "content.crossZoneEvictionDelayMs < 0",
  },
  {
    breaks: "zonewise status takes no Updated of a PhasedRollout from before an apply for one after it",
    file: "cli/decide/explain-phased.ts",
    tests: ["test/cli/commands/phased.test.ts"],
    find: "status.targetObservedGeneration === target.generation",
    replacement: "status.targetObservedGeneration !== undefined",
  },
  {
    breaks: "doctor never advises to delete the PhasedRollout that manages",
    file: "cli/decide/more-findings.ts",
    tests: ["test/cli/decide/more-findings.test.ts"],
    find: "one === owner || (other !== owner && one < other)",
    replacement: "one < other",
  },
  {
    breaks: "an empty namespace does not mean all namespaces",
    file: "cli/connect.ts",
    tests: ["test/cli/commands/actions.test.ts"],
    find: "flags.namespace || connection.namespace ||",
    replacement: "flags.namespace ?? connection.namespace ??",
  },
  {
    breaks: "a Ctrl-C cancels the calls of zonewise",
    file: "cli/connect.ts",
    tests: ["test/cli/commands/status.test.ts"],
    find: "onDate: clock.follow, signal }",
    replacement: "onDate: clock.follow }",
  },
  {
    breaks: "zonewise plan asks budgets one pod after the other",
    file: "reconciler/plan/next-step.ts",
    tests: ["test/reconciler/plan/budget-verdicts.test.ts"],
    find: "if (isAllowed(verdict)) current = reserve(current, pod);",
    replacement: "",
  },
  {
    breaks: "zonewise doctor warns of a definition that somebody else's installation would delete",
    file: "cli/decide/definition-owners.ts",
    tests: ["test/cli/decide/definition-owners.test.ts"],
    find: "text !== undefined && !NAMED.test(text)",
    replacement: "text !== undefined && NAMED.test(text)",
  },
];
