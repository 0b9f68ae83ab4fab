/** Evictions: which pod they reach. */
import type { Mutation } from "../mutation.ts";

const TWICE = "test/reconciler/budget/twice.test.ts";
const PINNED = "test/functions/eviction/pinned.test.ts";
const EVICTION = {
  file: "functions/eviction/pod-eviction.ts",
  tests: [PINNED, "test/functions/eviction/pod-eviction.test.ts"],
};
const SCOPE = { file: "reconciler/budget/zpdb.ts", tests: ["test/reconciler/budget/find-budget.test.ts"] };

export const EVICTION_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "an allowed eviction is pinned to the judged pod",
    ...EVICTION,
    find: "return answer.allowed && mayPatch ?",
    replacement: "return answer.allowed && mayPatch && dryRun ?",
  },
  {
    breaks: "an eviction of a terminating pod is pinned to it",
    ...EVICTION,
    find: "return answer.allowed && mayPatch ?",
    replacement: `return result.verdict.reason === "Allowed" && mayPatch ?`,
  },
  {
    breaks: "a UID that the client has set is kept",
    ...EVICTION,
    find: "if (pod === undefined || uid !== undefined)",
    replacement: "if (pod === undefined)",
  },
  {
    breaks: "an eviction without a UID in a validating webhook may reach the pod's successor",
    ...EVICTION,
    find: "const unpinned = !mayPatch && uid === undefined;",
    replacement: "const unpinned = !mayPatch && uid === path;",
  },
  {
    breaks: "a dry run that is set only in the Eviction is a dry run",
    ...EVICTION,
    find: "const dryRun = request.dryRun || eviction.dryRun;",
    replacement: "const { dryRun } = request;",
  },
  {
    breaks: "a Pending pod is judged and reserved like others",
    ...SCOPE,
    find: `["Succeeded", "Failed"].includes(pod.phase)`,
    replacement: `["Succeeded", "Failed", "Pending"].includes(pod.phase)`,
  },
  {
    breaks: "an eviction without a UID waits until a terminating pod is gone",
    ...SCOPE,
    find: "if (isTerminating(pod) && unpinned && mayBeUnder(pod, found, budgets))",
    replacement: "if (isTerminating(pod) && unpinned && found.length > 1000)",
  },
  {
    breaks: "an eviction without a UID waits until a terminating pod is gone, though its labels were not kept",
    ...SCOPE,
    find: "(textProblem === undefined ? found : all).length > 0",
    replacement: "found.length > 0 || (all.length > 1000 && textProblem !== undefined)",
  },
  {
    breaks: "an eviction of another UID reserves nothing",
    ...SCOPE,
    find: "if (uid !== undefined && uid !== pod.uid)",
    replacement: `if (uid === "")`,
  },
  {
    breaks: "a second eviction of a pod without a UID is not allowed within 15 s",
    file: "reconciler/budget/decide-eviction.ts",
    find: "return sameKind && !unpinned && found.pinned;",
    replacement: "return sameKind && found.pinned;",
    tests: [TWICE, PINNED],
  },
  {
    breaks: "an eviction with a UID is not allowed within 15 s after one without, which might reach the successor",
    file: "reconciler/budget/decide-eviction.ts",
    find: "!unpinned && found.pinned",
    replacement: "!unpinned",
    tests: [PINNED],
  },
  {
    breaks: "an eviction without a UID waits as long as the rollout may delete the pod",
    file: "reconciler/budget/decide-eviction.ts",
    find: "ageOf(found, now) >= RETRIED_FOR_MS && (isEviction || !unpinned)",
    replacement: "ageOf(found, now) >= RETRIED_FOR_MS",
    tests: [TWICE],
  },
  {
    breaks: "the rollout and an eviction do not disrupt the same pod",
    file: "reconciler/budget/decide-eviction.ts",
    find: "return sameKind && !unpinned && found.pinned;",
    replacement: "return !unpinned && found.pinned;",
    tests: [TWICE, PINNED],
  },
];
