/** What the reconciler says of evictions that are requested, and of nodes that it or somebody else works on. */
import type { Mutation } from "../mutation.ts";

const ANSWER = {
  file: "reconciler/evictions/decide-answer.ts",
  tests: ["test/reconciler/evictions/decide-answer.test.ts"],
};
const LIFECYCLE = ["test/reconciler/nodes/lifecycle-conditions.test.ts"];
const CONDITIONS = { file: "reconciler/nodes/lifecycle-conditions.ts", tests: LIFECYCLE };

export const REQUEST_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a requested eviction ends once its pod is gone",
    ...ANSWER,
    find: 'return { answer: "stepBack", why: "gone", message:',
    replacement: 'return { answer: "wait", expectedAt: undefined, message:',
  },
  {
    breaks: "a requested eviction that waits has a heartbeat every minute",
    ...ANSWER,
    find: "if (since >= HEARTBEAT_MS) return true;",
    replacement: "",
  },
  {
    breaks: "a requested eviction is handed on only once its budget allows it",
    ...ANSWER,
    find: "if (!isAllowed(verdict)) return",
    replacement: "if (verdict.message === undefined) return",
  },
  {
    breaks: "a node that somebody else works on does not start",
    file: "reconciler/nodes/skip.ts",
    tests: LIFECYCLE,
    find: `if (maintenance !== undefined) return skip("InMaintenance", maintenance);`,
    replacement: "",
  },
  {
    breaks: "an Event says that a node waits for somebody else's work",
    file: "reconciler/nodes/node-events.ts",
    tests: ["test/reconciler/nodes/act/lifecycle-conditions.test.ts"],
    find: `if (ref && reason === "InMaintenance") return`,
    replacement: `if (ref && reason === "InMaintenance" && text === "") return`,
  },
  {
    breaks: "a staged node that somebody else works on is not drained",
    file: "reconciler/nodes/preconditions.ts",
    tests: LIFECYCLE,
    find: "if (maintenance !== undefined) return maintenance;",
    replacement: "",
  },
  {
    breaks: "nodes that somebody else works on take slots",
    file: "reconciler/nodes/slots.ts",
    tests: LIFECYCLE,
    find: "+ maintained.filter(({ ready }) => ready).length",
    replacement: "",
  },
  {
    breaks: "no update begins on a node that shuts down by somebody else",
    ...CONDITIONS,
    find: '"MaintenanceInProgress", SHUTDOWN]);',
    replacement: '"MaintenanceInProgress"]);',
  },
  {
    breaks: "a condition of a node that somebody else has set stays",
    ...CONDITIONS,
    find: "!isOurs(found) || (isWanted",
    replacement: "(isWanted",
  },
  {
    breaks: "a condition of ours is cleared once its update is over",
    ...CONDITIONS,
    find: "if (!isActive && !isWanted) return undefined;",
    replacement: "if (!isWanted) return undefined;",
  },
  {
    breaks: "a node that is drained or reboots says so",
    ...CONDITIONS,
    find: "const types = update?.isDrained === true",
    replacement: "const types = update ? [] : update === undefined",
  },
];
