/** Node updates: slots, freezes, deadlines, cordons and the question before a drain. */
import type { Mutation } from "../mutation.ts";

const TESTS = ["starts", "active", "freeze", "policy", "start-checks", "hostile-agents", "upkeep", "properties"].map(
  (name) => `test/reconciler/nodes/${name}.test.ts`,
);
const RACES = ["test/reconciler/nodes/act/races.test.ts"];
const PLAN = { file: "reconciler/nodes/plan-pass.ts", tests: TESTS };
const STARTS = { file: "reconciler/nodes/plan-starts.ts", tests: TESTS };
const PROGRESS = { file: "reconciler/nodes/progress.ts", tests: TESTS };
const MACHINE = { file: "reconciler/nodes/state-machine.ts", tests: TESTS };
const PRECONDITIONS = { file: "reconciler/nodes/progress.ts", tests: TESTS };
const RECORDS = { file: "reconciler/nodes/records.ts", tests: TESTS };
const CLOSED = { file: "reconciler/nodes/skip.ts", tests: TESTS };
const CHECKS = { file: "reconciler/nodes/start-checks.ts", tests: TESTS };
const UPKEEP = { file: "reconciler/nodes/upkeep.ts", tests: TESTS };
const DRAIN = ["test/reconciler/nodes/drainable.test.ts"];
const BESIDE = ["test/reconciler/nodes/starts.test.ts"];
const DRAINABLE = { file: "reconciler/nodes/drainable.ts", tests: DRAIN };
const SLOTS = { file: "reconciler/nodes/plan-starts.ts", tests: ["test/reconciler/nodes/freeze.test.ts"] };

export const NODE_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a node that has a slot is looked for also without its label and its shadow",
    file: "reconciler/nodes/act/gather-nodes.ts",
    find: "[...owners, ...active]",
    replacement: "[...owners]",
    tests: RACES,
  },
  {
    breaks: "active nodes take slots",
    file: "reconciler/nodes/plan-starts.ts",
    tests: TESTS,
    find: "allowedActive(policy.maxConcurrent, own) - taken)",
    replacement: "allowedActive(policy.maxConcurrent, own))",
  },
  {
    breaks: "a frozen policy starts nothing",
    ...CLOSED,
    find: "  if (frozen) return { reason:",
    replacement: "  if (frozen && !enabled) return { reason:",
  },
  {
    breaks: "a node that another policy drives is left alone",
    ...PLAN,
    find: "!stepped.has(node.name) && isOurs(node)",
    replacement: "!stepped.has(node.name) && (isOurs(node) || node.managed)",
  },
  {
    breaks: "no more nodes start than there are slots",
    ...STARTS,
    find: "if (taken >= free",
    replacement: "if (taken > free",
  },
  {
    breaks: "one zone is finished before the next begins",
    ...STARTS,
    find: "activeZones.length === 0 ? !isTaken : activeZones.includes(zone)",
    replacement: "activeZones.length === 0 || activeZones.includes(zone)",
  },
  {
    breaks: "a staged node is not rebooted while frozen",
    ...PRECONDITIONS,
    find: "    if (policy.status.frozen) return `the policy is frozen",
    replacement: "    if (policy.status.frozen && !policy.enabled) return `the policy is frozen",
  },
  {
    breaks: "the pass that freezes reboots no other node",
    ...PLAN,
    find: "if (!records.frozen || policy.status.frozen) return",
    replacement: "if (records.active.length >= 0) return",
  },
  {
    breaks: "a node that is being drained is put back when its policy freezes",
    ...PROGRESS,
    find: 'if (!frozen || entry.phase !== "Draining" ||',
    replacement: 'if (!frozen || entry.phase !== "Starting" ||',
  },
  {
    breaks: "a node that a policy takes over before its reboot goes back",
    file: "reconciler/nodes/plan-active.ts",
    tests: TESTS,
    find: ', ending: { reason: "TakenOver", message } };',
    replacement: " };",
  },
  {
    breaks: "an attempt that was given up does not reboot",
    file: "functions/nodes/drain-node.ts",
    tests: ["test/reconciler/nodes/act/policies.test.ts"],
    find: "node === nodeName && !ending",
    replacement: "node === nodeName",
  },
  {
    breaks: "a policy that cannot be obeyed starts nothing",
    ...CLOSED,
    find: "if (problem !== undefined) return",
    replacement: 'if (problem === "") return',
  },
  {
    breaks: "checks hold starts",
    ...STARTS,
    find: "options.closed ?? (couldStart ? options.held : undefined)",
    replacement: "options.closed",
  },
  {
    breaks: "an answer of Prometheus that is old starts nothing",
    file: "reconciler/checks/result.ts",
    tests: TESTS,
    find: " && !isOld(check, streak, now)",
    replacement: "",
  },
  {
    breaks: "an answer of Prometheus from a time that is to come starts nothing",
    ...CHECKS,
    find: "lastAt <= now",
    replacement: "lastAt <= now + 60_000",
  },
  {
    breaks: "checks begin again when a node has left its slot",
    ...CHECKS,
    find: "if (ended || !isKept",
    replacement: "if (!isKept",
  },
  {
    breaks: "a node without a policy goes back to Idle",
    ...UPKEEP,
    find: "!managed || governed.has(name) ||",
    replacement: '!managed || name !== "" ||',
  },
  {
    breaks: "the policy default is not made again",
    file: "reconciler/nodes/act/update-nodes.ts",
    tests: ["test/reconciler/nodes/act/policies.test.ts"],
    find: "if (found > 0 || annotations.has(SEEN)) {",
    replacement: "if (found > 0) {",
  },
  {
    breaks: "a node is rebooted only if its drain would succeed",
    ...PRECONDITIONS,
    find: "reading.rollout ?? reading.obstacle ??",
    replacement: "reading.rollout ??",
  },
  {
    breaks: "a deadline frees the slot of a node in service only",
    ...PROGRESS,
    find: 'const isUsable = disruption === "draining" ? node.ready : isInService(node);',
    replacement: 'const isUsable = disruption === "draining" || node.ready;',
  },
  {
    breaks: "a node that is not heard of in time after its reboot freezes its policy, also if it serves",
    ...MACHINE,
    find: 'timeout: "ReturnTimeout",\n    expiry: { step: "freeze" },',
    replacement: 'timeout: "ReturnTimeout",\n    expiry: { step: "release", backOff: true },',
  },
  {
    breaks: "a drain that does not end is undone before its slot is free",
    ...MACHINE,
    find: 'timeout: "DrainTimeout",\n    expiry: { step: "reset", afterReboot: false },',
    replacement: 'timeout: "DrainTimeout",\n    expiry: { step: "release", backOff: true },',
  },
  {
    breaks: "a staged node is rebooted only once it is drainable",
    ...MACHINE,
    find: 'to: REBOOTED, once: "drainable"',
    replacement: 'to: REBOOTED, once: "ready"',
  },
  {
    breaks: "nobody acts for a failed attempt but on Idle",
    ...MACHINE,
    tests: ["test/reconciler/nodes/decide-agent.test.ts"],
    find: 'reported: ["none", "ErrorReset"], move: FAILED',
    replacement: 'reported: ["none", "ErrorReset"], move: byAgent("recover")',
  },
  {
    breaks: "a node that waits for its drain is no place for pods",
    ...MACHINE,
    tests: BESIDE,
    find: 'once: "drainable" })],\n    disruption: "ahead",',
    replacement: 'once: "drainable" })],\n    disruption: "over",',
  },
  {
    breaks: "a failure after the reboot counts",
    ...PROGRESS,
    find: "const afterReboot = hasRebooted(node, entry) || ",
    replacement: "const afterReboot = ",
  },
  {
    breaks: "a node without its label keeps its slot until it serves",
    ...PROGRESS,
    find: "|| isInReboot(node) || !isInService(node)) return undefined;",
    replacement: "|| isInReboot(node)) return undefined;",
  },
  {
    breaks: "a node without its label keeps its slot while it may reboot",
    ...PROGRESS,
    find: "|| isInReboot(node) || !isInService(node)) return undefined;",
    replacement: "|| !isInService(node)) return undefined;",
  },
  {
    breaks: "a node without its label is left alone until it is back from its reboot",
    ...PROGRESS,
    find: "hasRebooted(node, entry) && node.ready && !isInReboot(node);",
    replacement: "hasRebooted(node, entry);",
  },
  {
    breaks: "reasons do not make the status of a policy too large to be stored",
    file: "reconciler/nodes/plan-active.ts",
    tests: TESTS,
    find: "const waitsFor = why.slice(0, MAX_WAIT_LENGTH);",
    replacement: "const waitsFor = why;",
  },
  {
    breaks: "an attempt fails once",
    ...RECORDS,
    find: "failures.filter((one) => !isKnown(one))",
    replacement: "failures",
  },
  {
    breaks: "only the freeze that a person names is cleared",
    ...RECORDS,
    find: "policy.unfreeze !== status.frozen.id",
    replacement: "policy.unfreeze === undefined",
  },
  {
    breaks: "nothing uncordons a node that is about to reboot",
    ...UPKEEP,
    find: "if (isInReboot(node)) return released.has(name) && !active.has(name);",
    replacement: "",
  },
  {
    breaks: "a node that is not Ready stays cordoned",
    ...UPKEEP,
    find: "node.cordonedBy === undefined || !node.ready || ",
    replacement: "node.cordonedBy === undefined || ",
  },
  {
    breaks: "a shadow stays until its node is back in service",
    ...UPKEEP,
    find: "!active.has(node.name) && !isMarked && !isInReboot(node)",
    replacement: "!active.has(node.name)",
  },
  {
    breaks: "a drain is judged by the zone-aware budget",
    file: "reconciler/nodes/drainable.ts",
    tests: DRAIN,
    find: "return isAllowed(verdict) ? undefined : verdict.message;",
    replacement: "return undefined;",
  },
  {
    breaks: "two processes never take one slot each",
    file: "infra/kubernetes/write-status.ts",
    tests: RACES,
    find: "metadata: { ...place, uid, resourceVersion }",
    replacement: "metadata: { ...place }",
  },
  {
    breaks: "a shadow is written only if it has not changed",
    file: "reconciler/nodes/act/write-plan.ts",
    tests: RACES,
    find: "metadata: { resourceVersion }, spec }",
    replacement: "spec }",
  },
  {
    breaks: "a released node counts until it is back in service",
    ...SLOTS,
    find: "policy.status.active.length + returning.length;",
    replacement: "policy.status.active.length;",
  },
  {
    breaks: "a released node that is not Ready counts",
    ...SLOTS,
    find: "Math.max(remaining - out.length,",
    replacement: "Math.max(remaining,",
  },
  {
    breaks: "a released node that may never be Ready does not stop the others",
    ...SLOTS,
    find: "taken === 0 ? Math.min(1, remaining) : 0)",
    replacement: "0)",
  },
  {
    breaks: "a node that is going is no place for pods",
    ...DRAINABLE,
    find: "others?.filter((other) => !going.some(({ node }) => node === other.name))",
    replacement: "others?.filter((other) => going.length >= 0 || other)",
  },
  {
    breaks: "one node of a zone stays",
    ...DRAINABLE,
    find: '(isLast || (one.zone ?? "") === zone)',
    replacement: "isLast",
  },
  {
    breaks: "the only node that takes pods is not drained",
    ...DRAINABLE,
    find: "if (isLast) return {",
    replacement: 'if (isLast && zone === "-") return {',
  },
  {
    breaks: "no pod waits for the successor of another of its node",
    ...DRAINABLE,
    find: "oneByOne === undefined ||",
    replacement: 'oneByOne !== "" ||',
  },
  {
    breaks: "two pods of a node under one budget are found",
    ...DRAINABLE,
    find: "      under.set(budget, pod);\n",
    replacement: "",
  },
  {
    breaks: "a PodDisruptionBudget that allows none keeps a node from its drain",
    ...DRAINABLE,
    find: "return only.disruptionsAllowed > 0 ?",
    replacement: "return only.disruptionsAllowed >= 0 ?",
  },
  {
    breaks: "nodes that start in one pass count for each other",
    ...STARTS,
    tests: BESIDE,
    find: "    going.push(goingNow(node));\n",
    replacement: "",
  },
  {
    breaks: "nodes that are rebooted in one pass count for each other",
    file: "reconciler/nodes/plan-active.ts",
    tests: BESIDE,
    find: 'step.to === "RebootedIntoUpdate") going.push',
    replacement: 'step.to === "Idle") going.push',
  },
  {
    breaks: "staged nodes do not wait for each other",
    ...DRAINABLE,
    tests: BESIDE,
    find: 'goingOf(active, ["draining", "rebooting"]);',
    replacement: 'goingOf(active, ["ahead", "draining", "rebooting"]);',
  },
  {
    breaks: "a node that is not Ready is not given back",
    file: "functions/nodes/node-service.ts",
    tests: ["test/functions/nodes/node-service.test.ts"],
    find: "if (isOurs(node) && !isReady(node)) return refuse",
    replacement: "if (isOurs(node) && isReady(node) && !isReady(node)) return refuse",
  },
  {
    breaks: "an attempt counts once, however often its end has to be written",
    file: "reconciler/nodes/records.ts",
    tests: ["test/reconciler/nodes/active.test.ts", "test/reconciler/nodes/act/races.test.ts"],
    find: `(step.step === "reset" && !entry.ending)`,
    replacement: `step.step === "reset"`,
  },
  {
    breaks: "a policy whose status is refused holds up neither the others nor the upkeep",
    file: "reconciler/nodes/act/update-nodes.ts",
    tests: ["test/reconciler/nodes/act/policies.test.ts"],
    find: "if (!isRefused(error)) throw error;",
    replacement: "if (!isRefused(error) || policy.uid) throw error;",
  },
  {
    breaks: "a node that became Ready by a clock that was ahead is healthy in time",
    file: "reconciler/nodes/health.ts",
    tests: ["test/reconciler/nodes/health.test.ts"],
    find: "(isInFuture(at, now) ? began : at)",
    replacement: "(now < 0 ? began : at)",
  },
];
